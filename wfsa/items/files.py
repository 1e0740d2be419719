"""Catalogues from files: an array of a ``.npy``, memory-mapped, or chunks of a Parquet file.

**Which columns of a Parquet file are codes is said, or plain.** An integer column may as well be an id, a price or a
count, and an index over those would work and be wrong. So nothing is chosen where there is a choice: without names,
only a file whose one column is a list of integers, or that has nothing else but the named id column beside it, is
read; any other is an error that lists the columns and their types.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wfsa.errors import ItemError
from wfsa.items.rows import ItemChunk

PARQUET: tuple[str, ...] = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class ParquetColumns:
    """Which columns of a Parquet file hold what; None: not said.

    codes     integer columns, one a level, in the order of the levels
    sequence  one column of lists of integers, an item's codes each; not together with ``codes``
    ids       integers or strings: the items' ids
    """

    codes: Sequence[str] | None = None
    sequence: str | None = None
    ids: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.codes, str):
            raise ItemError(f"columns={self.codes!r} is one string; give a list of names, one a level")
        if self.codes is not None and self.sequence is not None:
            raise ItemError("give either columns (one a level) or list_column (all codes of an item), not both")
        if self.codes is not None and not self.codes:
            raise ItemError("columns is empty: give the names of the integer columns, one a level")


def open_file(path: str | os.PathLike[str], columns: ParquetColumns) -> Any:
    """What ``ItemIndex.build`` takes, from a path: an array of a ``.npy``, chunks of a ``.parquet``."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET:
        return read_parquet(path, columns)
    if suffix != ".npy":
        raise ItemError(f"{os.fspath(path)}: items are read from .npy and .parquet files")
    if columns != ParquetColumns():
        raise ItemError(f"{os.fspath(path)}: a .npy file has no columns to name; give ids as item_ids")
    return open_npy(path)


def open_npy(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """A ``.npy`` file, memory-mapped. Raises ItemError on one that is damaged or holds objects."""
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as e:
        raise ItemError(f"{os.fspath(path)} is no .npy file of numbers: {e}") from None
    return array


def read_parquet(path: str | os.PathLike[str], columns: ParquetColumns, batch: int = 1 << 18) -> Iterator[ItemChunk]:
    """Chunks of a Parquet file, ``batch`` rows each; the columns are looked at before the first is asked for.

    Needs pyarrow. Raises ItemError on columns that are not there, do not fit or were left open, and on nulls.
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
    chosen = _choose(os.fspath(path), file.schema_arrow, columns)
    return _chunks(os.fspath(path), file, chosen, batch)


def _choose(where: str, schema: Any, columns: ParquetColumns) -> ParquetColumns:
    """The columns that were named, checked; or the only list, where nothing else could be meant."""
    listed = ", ".join(f"{field.name} {field.type}" for field in schema)
    for name in [*(columns.codes or ()), columns.sequence, columns.ids]:
        if name is not None and name not in schema.names:
            raise ItemError(f"{where} has no column {name!r}; it has: {listed}")
    if columns.codes is None and columns.sequence is None:
        others = [field for field in schema if field.name != columns.ids]
        if len(others) != 1 or not _is_list_of_integers(others[0].type):
            raise ItemError(
                f"{where}: which columns hold the codes is not said. Name the integer columns, one a level: "
                "columns=[…] (--columns c0 c1 …); or the column of lists: list_column=… (--list-column sid); and "
                f"that of the items' ids, if there is one: id_column=… (--id-column item_id). It has: {listed}"
            )
        columns = ParquetColumns(None, others[0].name, columns.ids)
    for name in columns.codes or ():
        if not _is_integer(schema.field(name).type):
            raise ItemError(f"{where}: column {name!r} is {schema.field(name).type}, not integers; it has: {listed}")
    if columns.sequence is not None and not _is_list_of_integers(schema.field(columns.sequence).type):
        kind = schema.field(columns.sequence).type
        raise ItemError(f"{where}: column {columns.sequence!r} is {kind}, not lists of integers; it has: {listed}")
    if columns.ids is not None and not _is_id(schema.field(columns.ids).type):
        kind = schema.field(columns.ids).type
        raise ItemError(f"{where}: column {columns.ids!r} is {kind}; ids are integers or strings; it has: {listed}")
    return columns


def _is_integer(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind))


def _is_list_of_integers(kind: Any) -> bool:
    from pyarrow import types

    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return lists and _is_integer(kind.value_type)


def _is_id(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_id(kind.value_type)
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return _is_integer(kind) or any(is_one(kind) for is_one in texts)


def _chunks(where: str, file: Any, columns: ParquetColumns, batch: int) -> Iterator[ItemChunk]:
    codes = [columns.sequence] if columns.sequence is not None else [*(columns.codes or ())]
    wanted = [*codes, *([columns.ids] if columns.ids is not None else [])]
    for part in file.iter_batches(batch_size=batch, columns=wanted):
        for name in wanted:
            if part.column(name).null_count:
                raise ItemError(f"{where}: column {name!r} has nulls")
        ids = None if columns.ids is None else part.column(columns.ids)
        if columns.sequence is not None:
            yield ItemChunk(_sequences(where, columns.sequence, part.column(columns.sequence)), ids)
        else:
            yield ItemChunk(np.stack([part.column(name).to_numpy(zero_copy_only=False) for name in codes], 1), ids)


def _sequences(where: str, name: str, column: Any) -> Any:
    """Rows of a column of lists: a matrix where their length is fixed, else values with offsets."""
    if column.flatten().null_count:
        raise ItemError(f"{where}: column {name!r} has nulls in its lists")
    values = column.flatten().to_numpy(zero_copy_only=False)
    width = getattr(column.type, "list_size", None)
    if width is not None:
        return values.reshape(-1, width)
    offsets = column.offsets.to_numpy().astype(np.int64)
    return values, offsets - offsets[0]
