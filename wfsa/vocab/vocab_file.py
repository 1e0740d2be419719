"""A saved vocabulary: its arrays, and a head with size, name, fingerprint and names of special tokens.

    blob uint8 | offsets int64[n + 1] | special_token_ids int32 | eos_token_ids int32        as in
    wfsa/vocab/vocabulary.py

The caller checks what the arrays mean, and the fingerprint, which covers all of them.
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
    """Replaces an existing file in one step."""
    array_file.write(path, {**head, "format": FORMAT, "version": FORMAT_VERSION}, arrays)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], array_file.Arrays]:
    """The head and the four arrays; ArtifactError on a file of another format or version, or damaged."""
    file = array_file.read(path, "a saved vocabulary").expect("a saved vocabulary", FORMAT, FORMAT_VERSION)
    head, arrays = file.head, file.arrays
    for name, kind in _TYPES.items():
        found = arrays.get(name)
        if found is None or found.dtype != kind or found.ndim != 1:
            told = "missing" if found is None else f"{found.dtype} {list(found.shape)}"
            raise ArtifactError(f"{path}: damaged vocabulary file: array {name!r} is {told}, not {kind.__name__}[n]")
    return head, arrays
