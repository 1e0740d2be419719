"""The command line: ``wfsa``, or ``python -m wfsa``. One file per command."""

from wfsa.cli.main import main

__all__ = ["main"]
