"""What a caller may give as items, brought into one form without copying: a matrix, or values with row offsets.

Taken: an integer array [N, L]; a list of sequences; ``(values, row_offsets)`` with ``row_offsets`` int[N + 1]; chunks
of these with item ids (:class:`ItemChunk`), from an iterator; ``.npy`` files (memory-mapped) and Parquet files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wfsa.errors import ItemError
from wfsa.items.nodes import MAX_LEVELS


@dataclass(frozen=True, slots=True)
class ItemChunk:
    """A part of a catalogue: rows in any form that ``ItemIndex.build`` takes, and their ids (None: row numbers)."""

    rows: Any
    ids: Any = None


@dataclass(frozen=True, slots=True)
class Rows:
    """``data`` int[N, n_levels], or int[n_values] where ``offsets`` int64[N + 1] is given. Native byte order."""

    data: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64] | None
    n_levels: int

    def __len__(self) -> int:
        return len(self.data) if self.offsets is None else len(self.offsets) - 1

    def part(self, begin: int, end: int) -> Rows:
        """Rows begin .. end; the values are shared."""
        if self.offsets is None:
            return Rows(self.data[begin:end], None, self.n_levels)
        return Rows(self.data, self.offsets[begin : end + 1], self.n_levels)

    def row(self, number: int) -> list[int]:
        if self.offsets is None:
            return [int(x) for x in self.data[number]]
        return [int(x) for x in self.data[self.offsets[number] : self.offsets[number + 1]]]

    def padded(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
        """int[N, n_levels] with 0 past a row's end, and the lengths where there are offsets."""
        if self.offsets is None:
            return self.data, None
        lengths = np.diff(self.offsets)
        rows = np.zeros((len(lengths), self.n_levels), self.data.dtype)
        rows[np.arange(self.n_levels) < lengths[:, None]] = self.data[self.offsets[0] : self.offsets[-1]]
        return rows, lengths


def read_rows(sids: Any, n_levels: int | None = None) -> Rows:
    """One form for arrays, lists and values with offsets; ``n_levels`` (None: the longest row) bounds ragged rows.

    Raises ItemError on what is not integers, on rows without codes, on too many levels. Codes are not looked at.
    """
    if isinstance(sids, Rows):
        return sids
    if isinstance(sids, tuple) and len(sids) == 2 and np.ndim(sids[1]) == 1 and np.ndim(sids[0]) == 1:
        values, offsets = np.asarray(sids[0]), np.asarray(sids[1])
        if offsets.dtype.kind in "iu" and len(offsets) and offsets[0] == 0 and offsets[-1] == len(values):
            return _ragged(values, np.ascontiguousarray(offsets, np.int64), n_levels)
    if hasattr(sids, "__array__"):
        return _matrix(np.asarray(sids))
    listed = [list(row) for row in sids]
    lengths = np.asarray([len(row) for row in listed], np.int64)
    flat = [code for row in listed for code in row]
    try:
        values = np.asarray(flat) if flat else np.zeros(0, np.int64)
    except (ValueError, OverflowError) as e:
        raise ItemError(f"codes are not integers: {e}") from None
    return _ragged(values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), n_levels)


def _ragged(values: npt.NDArray[Any], offsets: npt.NDArray[np.int64], n_levels: int | None) -> Rows:
    lengths = np.diff(offsets)
    if np.any(lengths < 0):
        raise ItemError(f"the row offsets fall at row {int(np.argmax(lengths < 0))}")
    _integers(values)
    if not len(lengths):
        return Rows(np.zeros((0, n_levels or 1), np.int64), None, n_levels or 1)
    shortest, longest = int(lengths.min()), int(lengths.max())
    if shortest == 0:
        raise ItemError(f"item {int(np.argmin(lengths))} has no codes")
    if longest > (n_levels or MAX_LEVELS):
        raise ItemError(
            f"item {int(np.argmax(lengths))} has {longest} codes; 1 to {n_levels or MAX_LEVELS} are possible"
        )
    if shortest == longest == (n_levels or longest):
        return _matrix(values.reshape(-1, longest))
    return Rows(np.ascontiguousarray(_native(values)), offsets, n_levels or longest)


def _matrix(rows: npt.NDArray[Any]) -> Rows:
    if rows.ndim != 2:
        raise ItemError(f"items have shape {list(rows.shape)}, not [N, L]")
    _integers(rows)
    if not 1 <= rows.shape[1] <= MAX_LEVELS:
        raise ItemError(f"items have {rows.shape[1]} codes; 1 to {MAX_LEVELS} are possible")
    return Rows(_native(rows), None, rows.shape[1])


def _integers(values: npt.NDArray[Any]) -> None:
    if values.dtype.kind not in "iu":
        raise ItemError(f"codes are {values.dtype}, not integers")


def _native(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


# --- files --------------------------------------------------------------------------------------------------------


def open_npy(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """A ``.npy`` file, memory-mapped. Raises ItemError on one that is damaged or holds objects."""
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as e:
        raise ItemError(f"{os.fspath(path)} is no .npy file of numbers: {e}") from None
    return array


def read_parquet(
    path: str | os.PathLike[str], columns: list[str] | None = None, id_column: str | None = None, batch: int = 1 << 18
) -> Iterator[ItemChunk]:
    """Chunks of a Parquet file: one list column of codes, or one integer column a level.

    ``columns`` names them; None: the file's only list column, else all its integer columns but ``id_column``, in order.
    Needs pyarrow. Raises ItemError on missing or unfit columns and on nulls.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ItemError("reading Parquet needs pyarrow: pip install 'wfsa[parquet]'") from None
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as e:
        raise ItemError(f"{os.fspath(path)} is no Parquet file: {e}") from None
    schema = file.schema_arrow
    lists = [f.name for f in schema if pa.types.is_list(f.type) or pa.types.is_large_list(f.type)]
    lists += [f.name for f in schema if pa.types.is_fixed_size_list(f.type)]
    if columns is None:
        integers = [f.name for f in schema if pa.types.is_integer(f.type) and f.name != id_column]
        columns = lists if len(lists) == 1 else integers
    missing = [name for name in [*columns, *([id_column] if id_column else [])] if name not in schema.names]
    if missing or not columns:
        raise ItemError(f"{os.fspath(path)} has no column {missing[0] if missing else 'of codes'!r}: {schema.names}")
    wanted = [*columns, *([id_column] if id_column else [])]
    for part in file.iter_batches(batch_size=batch, columns=wanted):
        for name in wanted:
            if part.column(name).null_count:
                raise ItemError(f"{os.fspath(path)}: column {name!r} has nulls")
        ids = part.column(id_column).to_numpy(zero_copy_only=False) if id_column else None
        if columns[0] in lists:
            column = part.column(columns[0])
            if pa.types.is_fixed_size_list(column.type):
                width = column.type.list_size
                yield ItemChunk(column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width), ids)
                continue
            offsets = column.offsets.to_numpy().astype(np.int64)
            values = column.values.to_numpy(zero_copy_only=False)[offsets[0] : offsets[-1]]
            yield ItemChunk((values, offsets - offsets[0]), ids)
        else:
            yield ItemChunk(np.stack([part.column(name).to_numpy(zero_copy_only=False) for name in columns], 1), ids)


def open_file(path: str | os.PathLike[str], columns: list[str] | None, id_column: str | None) -> Any:
    """What ``ItemIndex.build`` takes, from a path: an array of a ``.npy``, chunks of a ``.parquet``."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npy":
        return open_npy(path)
    if suffix in (".parquet", ".pq"):
        return read_parquet(path, columns, id_column)
    raise ItemError(f"{os.fspath(path)}: items are read from .npy and .parquet files")
