"""Building a catalogue in shards: the steps, each a function of little input that any process may run, and run again.

    scan     a file's groups of rows: how many rows each has                       one task a file
    sample   leading keys of some groups' rows ─► boundaries of the ranges         one task a group
    read     a piece (some groups of a file): its rows, by range                   one task a piece
    pack     a range: all pieces' rows, sorted, written to the place               one task a range
    the manifest, last

What runs the steps is a :class:`Runner`: this process (:class:`Here`), or a cluster (``wfsa/items/distributed.py``).
A step has no state and no effect but files named by their content, so that running it twice, as a cluster does when a
process dies, changes nothing.

**Boundaries** are quantiles of keys of several leading codes, so that one frequent first code makes no giant shard.
They are kept from the catalogue that is at the place already, where it has the same levels and, if ``shards`` is given,
as many shards: a range in which nothing changed then gives the same bytes, and is not written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from wfsa.errors import ArtifactError, ItemError
from wfsa.items.assemble import SortedLeaves, check_depth
from wfsa.items.build import largest_codes, levels_of_chunks, read_chunk
from wfsa.items.files import Block, ParquetColumns, TableFile, list_tables
from wfsa.items.levels import Levels, make_levels
from wfsa.items.nodes import MAX_COUNT
from wfsa.items.rows import ItemChunk
from wfsa.items.shards import Packed, Part, pack
from wfsa.storage.item_shard_file import Manifest, leading_keys, read_manifest, write_manifest
from wfsa.storage.places import Place

Progress = Callable[[str, float], None]
T = TypeVar("T")
Tables = Sequence["str | Block"]
SAMPLE_GROUPS: Final = 64
SAMPLE_ROWS: Final = 1 << 13
"""Rows of a group whose keys are looked at, evenly spread."""


@dataclass(frozen=True, slots=True)
class Job:
    """What every step knows. ``dtype``: that of row numbers, None where they are not kept."""

    columns: ParquetColumns
    levels: Levels
    place: Place
    dtype: str | None = None
    boundaries: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """Some groups of a file or block; ``first`` is the number of their first row in the whole input."""

    path: str | Block
    groups: tuple[int, ...]
    first: int
    n_rows: int


class Runner(Protocol):
    """What runs the steps."""

    def tables(self, source: Any) -> Tables:
        """What a source consists of, in the order of its rows."""
        ...

    def map(self, step: Callable[..., T], inputs: Sequence[tuple[Any, ...]]) -> list[T]:
        """``step(*input)`` for each."""
        ...

    def shuffle(self, job: Job, pieces: Sequence[Piece], report: Callable[[float], None]) -> list[Packed | None]:
        """:func:`read` for each piece, then :func:`pack_range` for each range with every piece's rows, in order."""
        ...


class Here:
    """This process, which then holds all rows at once."""

    def tables(self, source: Any) -> Tables:
        return list_tables(source)

    def map(self, step: Callable[..., T], inputs: Sequence[tuple[Any, ...]]) -> list[T]:
        return [step(*one) for one in inputs]

    def shuffle(self, job: Job, pieces: Sequence[Piece], report: Callable[[float], None]) -> list[Packed | None]:
        parts = [read(job, piece) for piece in pieces]
        report(0.5)
        return [pack_range(job, *(part[i] for part in parts)) for i in range(len(job.boundaries) + 1)]


# --- the steps ----------------------------------------------------------------------------------------------------


def scan(path: str | Block, columns: ParquetColumns) -> list[int]:
    """Rows of each group of a file. Raises ItemError on columns that do not fit."""
    return TableFile(path, columns).groups()


def sample(job: Job, piece: Piece) -> npt.NDArray[np.uint64]:
    """Keys of some rows of a piece."""
    found = []
    step = max(piece.n_rows // SAMPLE_ROWS, 1)
    for part in _parts(job, piece, with_ids=False):
        chosen = np.arange(0, len(part), step)
        some = part.select(chosen)
        found.append(leading_keys(some.codes, some.lengths, job.levels))
    return np.concatenate([np.zeros(0, np.uint64), *found])


def read(job: Job, piece: Piece) -> list[Part]:
    """The rows of a piece, by range. Raises ItemError on bad codes, nulls, wrong ids."""
    parts = list(_parts(job, piece, with_ids=True))
    if not parts:
        return [_nothing(job)] * (len(job.boundaries) + 1)
    joined = Part.join(parts)
    del parts
    return joined.split(job.levels, job.boundaries)


def pack_range(job: Job, *parts: Part) -> Packed | None:
    """A range from its rows of every piece, in the order of the pieces."""
    return pack([part for part in parts if len(part)], job.levels, job.place)


def _parts(job: Job, piece: Piece, with_ids: bool) -> Iterable[Part]:
    at, levels = piece.first, job.levels
    for chunk in TableFile(piece.path, job.columns).chunks(piece.groups, with_ids=with_ids):
        rows, ids = read_chunk(chunk, len(levels), at)
        largest = largest_codes(rows, at, 1)
        make_levels(len(levels), largest, levels.sizes, levels.offsets, levels.logits_size, levels.end_token)
        codes, lengths = rows.padded()
        numbers = None if job.dtype is None else np.arange(at, at + len(rows)).astype(job.dtype)
        at += len(rows)
        short = None if lengths is None else lengths.astype(np.uint8)
        yield Part(codes.astype(levels.code_dtype, copy=False), short, numbers, ids)


def _nothing(job: Job) -> Part:
    rows = None if job.dtype is None else np.zeros(0, job.dtype)
    return Part(np.zeros((0, len(job.levels)), job.levels.code_dtype), None, rows, None)


# --- all of it ----------------------------------------------------------------------------------------------------


def build_sharded(
    runner: Runner,
    source: Any,
    place: Place,
    columns: ParquetColumns,
    levels_given: dict[str, Any],
    layout: dict[str, Any],
    rows: str,
    shards: int | None,
    memory: int,
    progress: Progress,
) -> Manifest:
    """Build, and make what was built the catalogue at the place; see ``ItemIndex.build_distributed``."""
    if rows not in ("input", "sorted"):
        raise ItemError(f"rows={rows!r}; it is input or sorted")
    if shards is not None and not 1 <= shards <= 1 << 15:
        raise ItemError(f"{shards} shards; 1 to {1 << 15} are possible")
    paths = runner.tables(source)
    place.make()
    groups = runner.map(scan, [(path, columns) for path in paths])
    progress("scan", 0.05)
    n = sum(map(sum, groups))
    levels = _levels(paths, groups, columns, levels_given)
    _check_layout(layout, levels, len(levels))
    earlier = _earlier(place)
    job = Job(columns, levels, place, None if rows == "sorted" else "uint32" if n < 1 << 32 else "int64")
    row_bytes = len(levels) * levels.code_dtype.itemsize + 4 + (16 if columns.ids else 0)
    pieces = _pieces(paths, groups, max(memory // (6 * row_bytes), 1))
    kept = earlier is not None and earlier.levels == levels and shards in (None, len(earlier.shards))
    if kept and earlier is not None and earlier.shards:
        boundaries = earlier.boundaries
    else:
        wanted = shards or -(-n * (6 * row_bytes + 24) // memory)
        boundaries = _boundaries(runner, job, paths, groups, max(wanted, 1))
    progress("sample", 0.1)
    job = Job(job.columns, levels, place, job.dtype, boundaries)
    packed = runner.shuffle(job, pieces, lambda x: progress("shuffle", 0.1 + 0.88 * x)) if n else []
    full = [number for number, one in enumerate(packed) if one is not None]
    made = [one for one in packed if one is not None]
    kinds = {one.ids for one in made}
    if len(kinds) > 1:
        raise ItemError(f"item ids are {' in some files and '.join(sorted(map(str, kinds)))} in others")
    _check_layout(layout, levels, min((one.shortest for one in made), default=len(levels)))
    manifest = Manifest(
        levels,
        layout,
        kinds.pop() if kinds else None,
        rows,
        n,
        tuple(boundaries[number - 1] for number in full[1:]),
        tuple(one.entry for one in made),
        1 if earlier is None else earlier.serial + 1,
    )
    write_manifest(place, manifest)
    progress("manifest", 1.0)
    return manifest


def _levels(paths: Tables, groups: list[list[int]], columns: ParquetColumns, given: dict[str, Any]) -> Levels:
    """As of the first rows, which an iterator of chunks would begin with."""
    vocab_size = given["vocab_size"]
    if vocab_size is None:
        raise ItemError("a build in shards needs vocab_size: the codes of a level are not known before all are read")
    first: Any = None
    for path, rows in zip(paths, groups, strict=True):
        if sum(rows):
            first = next(iter(TableFile(path, columns).chunks([int(np.argmax(np.asarray(rows) > 0))], 1 << 10)))
            break
    n_levels = 1 if np.ndim(vocab_size) == 0 else len(vocab_size)
    if first is not None:
        n_levels = levels_of_chunks(ItemChunk(first.rows), vocab_size)
    return make_levels(n_levels, np.full(n_levels, -1, np.int64), **given)


def _check_layout(layout: dict[str, Any], levels: Levels, shortest: int) -> None:
    """Raise ItemError, LimitError on what :func:`wfsa.items.shards.assemble` could not lay out."""
    if not 1 <= layout["small"] <= MAX_COUNT:
        raise ItemError(f"small nodes of up to {layout['small']} leaves; 1 to {MAX_COUNT} are possible")
    if layout["head_depth"] is not None:
        nothing = np.zeros(0, np.uint8)
        rows = SortedLeaves(levels, nothing, nothing, np.zeros(len(levels) + 1, np.int64), False)
        check_depth(layout["head_depth"], rows)
        if layout["head_depth"] > shortest:
            raise ItemError(
                f"head depth {layout['head_depth']}, but an item has {shortest} codes; no item may end in the head"
            )


def _earlier(place: Place) -> Manifest | None:
    """What is at the place now; a damaged manifest is as none, and is replaced."""
    try:
        return read_manifest(place)
    except (FileNotFoundError, ArtifactError):
        return None


def _pieces(paths: Tables, groups: list[list[int]], most: int) -> list[Piece]:
    """Groups of one file together, up to ``most`` rows; a larger group is a piece by itself."""
    found: list[Piece] = []
    first = 0
    for path, rows in zip(paths, groups, strict=True):
        held: list[int] = []
        for group, n in enumerate(rows):
            if held and sum(rows[i] for i in held) + n > most:
                found.append(Piece(path, tuple(held), first, sum(rows[i] for i in held)))
                first += found[-1].n_rows
                held = []
            if n:
                held.append(group)
        if held:
            found.append(Piece(path, tuple(held), first, sum(rows[i] for i in held)))
            first += found[-1].n_rows
    return found


def _boundaries(runner: Runner, job: Job, paths: Tables, groups: list[list[int]], shards: int) -> tuple[int, ...]:
    """Keys that cut a sample into equal parts."""
    if shards == 1:
        return ()
    single = _pieces(paths, groups, 1)
    chosen = (
        [single[i] for i in np.unique(np.linspace(0, len(single) - 1, SAMPLE_GROUPS).astype(int))] if single else []
    )
    found = runner.map(sample, [(job, piece) for piece in chosen])
    weights = [np.full(len(keys), piece.n_rows / max(len(keys), 1)) for keys, piece in zip(found, chosen, strict=True)]
    keys = np.concatenate([np.zeros(0, np.uint64), *found])
    if not len(keys):
        return ()
    order = np.argsort(keys, kind="stable")
    upto = np.cumsum(np.concatenate(weights)[order])
    cuts = keys[order][np.searchsorted(upto, upto[-1] * np.arange(1, shards) / shards)]
    return tuple(int(x) for x in np.unique(cuts) if x > keys[order[0]])
