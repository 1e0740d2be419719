"""Saving a filter over an item index: one file of arrays (wfsa/storage/array_file.py), for one index.

    words    int32[N // 32 + 1]    a bit an item, in the index's leaf order (wfsa/items/filter.py); the leaves' bits and
                                   ranks are made when it is loaded

Version 1 had a bit a leaf, which says nothing about the items that share one: such a file is refused.

The head has the fingerprint of the index, by which it is known again. Same filter, same bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from wfsa.errors import ArtifactError
from wfsa.storage import array_file

FORMAT: Final = "wfsa-item-filter"
VERSION: Final = 2
_KIND: Final = "a filter over items"


def save(path: str | os.PathLike[str], fingerprint: str, n_items: int, words: npt.NDArray[np.int32]) -> None:
    """Write a filter of the index with this fingerprint; replaces an existing file in one step."""
    head = {"format": FORMAT, "version": VERSION, "fingerprint": fingerprint, "n_items": n_items}
    array_file.write(path, head, {"words": words})


def load(path: str | os.PathLike[str], fingerprint: str, n_items: int) -> npt.NDArray[np.int32]:
    """The words of a filter of this index. ArtifactError on a damaged file, and on one for another index."""
    where = Path(path)
    file = array_file.read(where, _KIND).expect(_KIND, FORMAT, VERSION)
    head, arrays = file.head, file.arrays
    if head.get("fingerprint") != fingerprint:
        raise ArtifactError(
            f"{where} is a filter of another index (fingerprint {head.get('fingerprint')!r}, this index has "
            f"{fingerprint!r}); load it with that index, or make the filter again from this one's rows or ids"
        )
    file.verify()
    words = arrays.get("words")
    if words is None or head.get("n_items") != n_items or words.shape != (n_items // 32 + 1,):
        raise ArtifactError(f"{where} is damaged: {n_items} items do not fit its words")
    if words.dtype != np.int32 or int(words[-1:].view(np.uint32)[0]) >> (n_items & 31):
        raise ArtifactError(f"{where} is damaged: words have a wrong type, or bits past the last item")
    return np.array(words)
