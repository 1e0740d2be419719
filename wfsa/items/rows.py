"""What a caller may give as items, brought into one form: ``int[N, L]`` and, where lengths differ, ``lengths``.

Taken: an integer array [N, L]; a list of sequences; ``(values, row_offsets)`` with ``row_offsets`` int[N + 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wfsa.errors import ItemError
from wfsa.items.levels import MAX_CODES
from wfsa.items.nodes import MAX_LEVELS


def read_rows(sids: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """Rows int[N, L] (0 past a row's end) and lengths int64[N], or None where every row has L codes.

    Raises ItemError on what is not integers, on negative codes, on rows without codes, on too many levels.
    """
    if (
        isinstance(sids, tuple)
        and len(sids) == 2
        and all(hasattr(x, "__len__") for x in sids)
        and np.ndim(sids[1]) == 1
    ):
        values, offsets = np.asarray(sids[0]), np.asarray(sids[1])
        if np.ndim(values) == 1 and offsets.dtype.kind in "iu" and len(offsets) and offsets[0] == 0:
            return _from_offsets(values, offsets.astype(np.int64))
    if isinstance(sids, np.ndarray) or hasattr(sids, "__array__"):
        return _check(np.asarray(sids)), None
    listed = [list(row) for row in sids]
    lengths = np.asarray([len(row) for row in listed], np.int64)
    flat = [code for row in listed for code in row]
    values = np.asarray(flat) if flat else np.zeros(0, np.int64)
    return _from_offsets(values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def _from_offsets(
    values: npt.NDArray[Any], offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    lengths = np.diff(offsets)
    if offsets[-1] != len(values) or np.any(lengths < 0):
        raise ItemError(f"row offsets must rise from 0 to the {len(values)} values")
    if not len(lengths):
        return np.zeros((0, 1), np.int64), None
    if values.dtype.kind not in "iu":
        raise ItemError(f"codes are {values.dtype}, not integers")
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest == 0:
        raise ItemError(f"item {int(np.argmin(lengths))} has no codes")
    if longest > MAX_LEVELS:
        raise ItemError(f"item {int(np.argmax(lengths))} has {longest} codes; 1 to {MAX_LEVELS} are possible")
    if shortest == longest:
        return _check(values.reshape(-1, longest)), None
    rows = np.zeros((len(lengths), longest), values.dtype)
    rows[np.arange(longest) < lengths[:, None]] = values
    return _check(rows), lengths


def _check(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if rows.ndim != 2:
        raise ItemError(f"items have shape {list(rows.shape)}, not [N, L]")
    if rows.dtype.kind not in "iu":
        raise ItemError(f"codes are {rows.dtype}, not integers")
    if not 1 <= rows.shape[1] <= MAX_LEVELS:
        raise ItemError(f"items have {rows.shape[1]} codes; 1 to {MAX_LEVELS} are possible")
    if len(rows):
        if rows.dtype.kind == "i" and rows.min() < 0:
            row = int(np.argmax((rows < 0).any(axis=1)))
            raise ItemError(f"item {row} has a negative code: {rows[row].tolist()}")
        if rows.max() >= MAX_CODES:
            row = int(np.argmax((rows >= MAX_CODES).any(axis=1)))
            raise ItemError(f"item {row} has a code past {MAX_CODES - 1}: {rows[row].tolist()}")
    return rows
