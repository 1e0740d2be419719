"""Opens files that others may have replaced: a FIFO would block, and a device could be read without end."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from typing import Final

_NO_FILE: Final = (errno.ELOOP, errno.ENXIO)  # a link to itself, a socket


class NotRegularFile(OSError):
    """A FIFO, a socket, a device, a folder or a link to itself, where a file is expected."""


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file for reading; raises NotRegularFile at once for anything else, and OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        if error.errno in _NO_FILE:
            raise NotRegularFile(error.errno, "is not a regular file", os.fspath(path)) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularFile(errno.EINVAL, "is not a regular file", os.fspath(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return all bytes of a file; raises like :func:`open_regular`."""
    with open_regular(path) as file:
        return file.read()


def regular_size(path: str | os.PathLike[str]) -> int | None:
    """Return the bytes of a file, or None if it is not a regular file. Raises OSError."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    return status.st_size if stat.S_ISREG(status.st_mode) else None
