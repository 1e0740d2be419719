"""The sorted, distinct sequences of a catalogue: what both layouts are made from.

Order: lexicographic by code, a sequence before its extensions. ``lcp[r]`` is how many codes row r shares with row r - 1
(0 for the first), so a node of level ``l >= 1`` begins at the rows with ``lengths[r] >= l > lcp[r]``: the
whole trie is in ``lcp`` and ``lengths``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Leaves:
    """``columns[l]`` codes of level l, any unsigned type, length U each; 0 past a row's end.

    ``lengths``: uint8[U], None when every row has all levels. ``lcp``: uint8[U].
    """

    columns: list[npt.NDArray[Any]]
    lengths: npt.NDArray[np.uint8] | None
    lcp: npt.NDArray[np.uint8]

    @property
    def n_leaves(self) -> int:
        return len(self.lcp)

    @property
    def min_length(self) -> int:
        if self.lengths is None or not len(self.lengths):
            return len(self.columns)
        return int(self.lengths.min())

    @property
    def has_prefix_items(self) -> bool:
        """Whether some row is a proper prefix of another: then it is one of the next row's."""
        return self.lengths is not None and bool(np.any(self.lcp[1:] == self.lengths[:-1]))

    def begins(self, level: int, rows: npt.NDArray[Any] | slice = slice(None)) -> npt.NDArray[np.bool_]:
        """Which rows begin a node of ``level`` (>= 1)."""
        found: npt.NDArray[np.bool_] = self.lcp[rows] < level
        if self.lengths is not None:
            found &= self.lengths[rows] >= level
        return found


def sort_leaves(
    sids: npt.NDArray[Any], lengths: npt.NDArray[Any] | None
) -> tuple[Leaves, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sort and deduplicate rows ``sids[N, L]`` with NumPy: the slow twin of the compiled builder.

    Returns the leaves, ``order`` (int64[N]: input rows in sorted order, stable) and ``indptr`` (int64[U + 1]: the
    items of leaf u are ``order[indptr[u]:indptr[u + 1]]``). Codes past a row's length are ignored.
    """
    n, n_levels = sids.shape
    keys = sids.astype(np.int64) + 1
    if lengths is not None:
        keys[np.arange(n_levels) >= np.asarray(lengths)[:, None]] = 0
    order = np.lexsort(keys.T[::-1]) if n else np.zeros(0, np.int64)
    keys = keys[order]
    same = np.cumprod(keys[1:] == keys[:-1], axis=1, dtype=np.int64) * (keys[1:] > 0)
    lcp = np.concatenate([np.zeros(min(n, 1), np.int64), same.sum(axis=1)])
    row_lengths = (keys > 0).sum(axis=1)
    duplicate = np.zeros(n, np.bool_)
    duplicate[1:] = (lcp[1:] == row_lengths[1:]) & (row_lengths[1:] == row_lengths[:-1])
    first = np.flatnonzero(~duplicate)
    # A row after duplicates compares with the same sequence as their first.
    rows = np.maximum(keys[first] - 1, 0)
    leaves = Leaves(
        [np.ascontiguousarray(rows[:, level]) for level in range(n_levels)],
        None if lengths is None or bool((row_lengths == n_levels).all()) else row_lengths[first].astype(np.uint8),
        lcp[first].astype(np.uint8),
    )
    return leaves, order.astype(np.int64), np.concatenate([first, [n]]).astype(np.int64)
