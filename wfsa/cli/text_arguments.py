"""A text on the command line: itself, a file, or standard input."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from wfsa.cli.files import read_bytes
from wfsa.errors import WfsaError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", help="the text itself")
    parser.add_argument("--file", type=Path, help="read the text from a file, or - for standard input")


def read(arguments: argparse.Namespace) -> bytes:
    """WfsaError unless just one of them is given."""
    if (arguments.text is None) == (arguments.file is None):
        raise WfsaError("give either the text or --file")
    return os.fsencode(arguments.text) if arguments.file is None else read_bytes(arguments.file)
