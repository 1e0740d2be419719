"""Files that commands read and write: standard input as ``-``, text as UTF-8, folders that have to be there."""

from __future__ import annotations

import sys
from pathlib import Path

from wfsa.errors import WfsaError


def read_bytes(path: Path) -> bytes:
    """The content of a file, or of standard input for ``-``."""
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def read_text(path: Path) -> str:
    """The same as UTF-8; WfsaError with the place of the first byte that is none."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise WfsaError(f"{path}: not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from error


def require_folder(output: Path) -> None:
    """WfsaError where ``output`` cannot be written for want of its folder: told before the work, not after it."""
    if not output.parent.is_dir():
        raise WfsaError(f"{output}: there is no folder {output.parent}; make it first: mkdir -p {output.parent}")
