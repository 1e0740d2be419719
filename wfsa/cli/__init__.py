"""The command line: ``wfsa``, or ``python -m wfsa``. One command a file."""

from wfsa.cli.main import main

__all__ = ["main"]
