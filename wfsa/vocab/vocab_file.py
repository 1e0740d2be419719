"""A saved vocabulary: its arrays, and a head with size, name, fingerprint and names of special tokens.

    blob uint8 | offsets int64[n + 1] | special_ids int32 | eos_ids int32        as in wfsa/vocab/vocabulary.py

The caller checks the contents of the arrays, and the fingerprint, which covers all of them.
"""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from wfsa.errors import ArtifactError
from wfsa.storage import array_file

FORMAT: Final = "wfsa-vocab"
FORMAT_VERSION: Final = 2
_TYPES: Final = {"blob": np.uint8, "offsets": np.int64, "special_ids": np.int32, "eos_ids": np.int32}


def write(path: str | os.PathLike[str], head: dict[str, Any], arrays: array_file.Arrays) -> None:
    """Write a vocabulary; an existing file is replaced atomically."""
    array_file.write(path, {**head, "format": FORMAT, "version": FORMAT_VERSION}, arrays)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], array_file.Arrays]:
    """Return the head and the four arrays.

    Raises ArtifactError for a damaged file, or one of another format or version.
    """
    file = array_file.read(path, "a saved vocabulary").expect("a saved vocabulary", FORMAT, FORMAT_VERSION)
    head, arrays = file.head, file.arrays
    for name, kind in _TYPES.items():
        array = arrays.get(name)
        if array is None or array.dtype != kind or array.ndim != 1:
            problem = "missing" if array is None else f"{array.dtype} {list(array.shape)}"
            raise ArtifactError(f"{path}: damaged vocabulary file: array {name!r} is {problem}, not {kind.__name__}[n]")
    return head, arrays
