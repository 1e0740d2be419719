"""Opening files that others may have put there: a FIFO would be waited for, and a device be read, without end."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from typing import Final

_NO_FILE: Final = (errno.ELOOP, errno.ENXIO)  # a link to itself, a socket


class NotRegularFile(OSError):
    """A FIFO, a socket, a device, a folder or a link to itself where a file is expected."""


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """The file, open for reading; NotRegularFile for anything else, at once.  Raises OSError."""
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
    """All bytes of a file; raises as :func:`open_regular`."""
    with open_regular(path) as file:
        return file.read()


def regular_size(path: str | os.PathLike[str]) -> int | None:
    """Bytes of a file, None for what is not a regular one.  Raises OSError."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    return status.st_size if stat.S_ISREG(status.st_mode) else None
