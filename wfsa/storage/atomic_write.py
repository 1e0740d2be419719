"""Writes a file that appears completely or not at all: it is written next to its place and renamed.

Errors name the requested file, never the temporary one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path


def replace_file(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> None:
    """Write `pieces` in order to `path`; an existing file is replaced atomically.

    Raises OSError: FileNotFoundError if the folder does not exist, otherwise the error of the file system.
    """
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_native_id()}.part")
    try:
        with scratch.open("wb") as out:
            for piece in pieces:
                out.write(piece)
        scratch.replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        if not target.parent.is_dir():
            reason = f"the folder {str(target.parent)!r} does not exist; make it first"
        raise OSError(error.errno, reason, str(target)) from None
    finally:
        scratch.unlink(missing_ok=True)
