"""The command line."""

from wfsa.cli.commands import main

__all__ = ["main"]
