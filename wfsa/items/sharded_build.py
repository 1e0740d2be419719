"""Building a catalogue in shards: the steps, each a function of little input that any process may run, and run again.

    scan     a file's groups of rows: how many rows each has                       one task a file
    sample   leading keys of some groups' rows ─► boundaries of the ranges         one task a group
    read     a piece (some groups of a file, or a part of one): its rows, by range one task a piece
    pack     a range: all pieces' rows, sorted, written to the place               one task a range
    the manifest, last

What runs the steps is a :class:`Runner`: this process (:class:`Here`), or a cluster (``wfsa/items/distributed.py``).
A step has no state and no effect but files named by their content, so that running it twice, as a cluster does when a
process dies, changes nothing. Local paths are made absolute: a task may run in another folder.

**Boundaries** are quantiles of keys of several leading codes, so that one frequent first code makes no giant shard.
They are kept from the catalogue that is at the place already, where it has the same levels and, if ``shards`` is given,
as many shards: a range in which nothing changed then gives the same bytes, and is not written again. A range that has
grown by half past what ``memory`` allows is cut, alone; of a given number of ranges all are cut anew, if that helps.
Ranges that became small stay. So a sample is taken in every build of more rows than one range may have.

**Memory.** A piece and a range have as many rows as a task of ``memory`` bytes gets by with (:func:`_row_bytes`); a
larger group of rows is read in parts, each of which decodes what is before it. Rows with one key cannot be parted:
where they are too many, and where ``shards`` are too few, the log ``wfsa`` says what a task will take.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from wfsa.errors import ArtifactError, ItemError, LimitError
from wfsa.items.assemble import SortedLeaves, check_depth
from wfsa.items.build import largest_codes, levels_of_chunks, read_chunk
from wfsa.items.build_spec import BuildSpec
from wfsa.items.files import Block, ParquetColumns, TableFile, list_tables
from wfsa.items.levels import Levels, make_levels
from wfsa.items.rows import ItemChunk
from wfsa.items.shard_file import Manifest, leading_keys, read_manifest, write_manifest
from wfsa.items.shards import Packed, Part, pack
from wfsa.storage.places import Place, is_url

_log: Final = logging.getLogger("wfsa")
T = TypeVar("T")
Tables = Sequence["str | Block"]
MAX_SHARDS: Final = 1 << 15
GROWTH: Final = 1.5
"""A range that was there may have so many times the rows of a new one; what a task takes leaves room for that."""
SAMPLE_GROUPS: Final = 64
"""Groups that are looked at, at least; two a range, if those are more: in a sorted input each has its own keys."""
SAMPLE_ROWS: Final = 1 << 13
"""Rows of a group whose keys are looked at, evenly spread."""
SAMPLE_KEYS: Final = 1 << 22
"""Of all groups together, some."""


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
    """Some groups of a file or block, without their first ``skip`` rows; ``first`` is its first row's number in all."""

    path: str | Block
    groups: tuple[int, ...]
    first: int
    n_rows: int
    skip: int = 0


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of each group of a file, and bytes of all its ids that are strings."""

    groups: list[int]
    string_bytes: int


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


def scan(path: str | Block, columns: ParquetColumns) -> Scan:
    """What is known of a file before its rows are. Raises ItemError on columns that do not fit."""
    file = TableFile(path, columns)
    return Scan(file.groups(), file.string_bytes())


def sample(job: Job, piece: Piece, n_rows: int) -> npt.NDArray[np.uint64]:
    """Keys of some ``n_rows`` rows of a piece."""
    found = []
    step = max(piece.n_rows // n_rows, 1)
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
    file = TableFile(piece.path, job.columns)
    for chunk in file.chunks(piece.groups, with_ids=with_ids, skip=piece.skip, n_rows=piece.n_rows):
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
    spec: BuildSpec,
    rows: str,
    shards: int | None,
) -> Manifest:
    """Build, and make what was built the catalogue at the place; see ``ItemIndex.build_distributed``."""
    if rows not in ("input", "sorted"):
        raise ItemError(f"rows={rows!r}; it is input or sorted")
    if shards is not None and not 1 <= shards <= MAX_SHARDS:
        raise ItemError(f"{shards} shards; 1 to {MAX_SHARDS} are possible")
    columns, memory = spec.columns, spec.memory
    paths = [_absolute(path) if isinstance(path, str) else path for path in runner.tables(source)]
    place.make()
    scans = runner.map(scan, [(path, columns) for path in paths])
    groups = [one.groups for one in scans]
    spec.report("scan", 0.05)
    n = sum(map(sum, groups))
    levels = _levels(paths, groups, spec)
    _check_head(spec, levels, len(levels))
    earlier = _earlier(place)
    job = Job(columns, levels, place, None if rows == "sorted" else "uint32" if n < 1 << 32 else "int64")
    row_bytes = _row_bytes(levels, columns, sum(one.string_bytes for one in scans) / max(n, 1))
    pieces = _pieces(paths, groups, max(memory // (6 * row_bytes), 1))
    kept = earlier is not None and earlier.levels == levels and shards in (None, len(earlier.shards))
    known = earlier.boundaries if kept and earlier is not None and earlier.shards else None
    limit = Limit(memory, 6 * row_bytes + 24, shards)
    boundaries = _boundaries(runner, job, paths, groups, known, limit)
    spec.report("sample", 0.1)
    job = Job(job.columns, levels, place, job.dtype, boundaries)
    packed = runner.shuffle(job, pieces, lambda x: spec.report("shuffle", 0.1 + 0.88 * x)) if n else []
    full = [number for number, one in enumerate(packed) if one is not None]
    made = [one for one in packed if one is not None]
    kinds = {one.ids for one in made}
    if len(kinds) > 1:
        raise ItemError(f"item ids are {' in some files and '.join(sorted(map(str, kinds)))} in others")
    _check_head(spec, levels, min((one.shortest for one in made), default=len(levels)))
    latest = _earlier(place)  # whose serial has risen where something was published in the meantime
    if latest is not None and {*latest.deltas} - {*(() if earlier is None else earlier.deltas)}:
        _log.warning("%s: what was published while it was built is not in it; publish that again", place.where)
    manifest = Manifest(
        levels,
        spec.layout_options(),
        kinds.pop() if kinds else None,
        rows,
        n,
        tuple(boundaries[number - 1] for number in full[1:]),
        tuple(one.entry for one in made),
        1 if latest is None else latest.serial + 1,
    )
    write_manifest(place, manifest)
    spec.report("manifest", 1.0)
    return manifest


def _levels(paths: Tables, groups: list[list[int]], spec: BuildSpec) -> Levels:
    """As of the first rows, which an iterator of chunks would begin with."""
    vocab_size = spec.vocab_size
    if vocab_size is None:
        raise ItemError("a build in shards needs vocab_size: the codes of a level are not known before all are read")
    first: Any = None
    for path, rows in zip(paths, groups, strict=True):
        if sum(rows):
            first = next(iter(TableFile(path, spec.columns).chunks([int(np.argmax(np.asarray(rows) > 0))], 1 << 10)))
            break
    n_levels = 1 if np.ndim(vocab_size) == 0 else len(vocab_size)
    if first is not None:
        n_levels = levels_of_chunks(ItemChunk(first.rows), vocab_size)
    return spec.levels(n_levels)


def _check_head(spec: BuildSpec, levels: Levels, shortest: int) -> None:
    """Raise ItemError, LimitError on what :func:`wfsa.items.shards.assemble` could not lay out."""
    if spec.head_depth is not None:
        nothing = np.zeros(0, np.uint8)
        rows = SortedLeaves(levels, nothing, nothing, np.zeros(len(levels) + 1, np.int64), False)
        check_depth(spec.head_depth, rows)
        if spec.head_depth > shortest:
            raise ItemError(
                f"head depth {spec.head_depth}, but an item has {shortest} codes; no item may end in the head"
            )


def _earlier(place: Place) -> Manifest | None:
    """What is at the place now; a damaged manifest is as none, and is replaced."""
    try:
        return read_manifest(place)
    except (FileNotFoundError, ArtifactError):
        return None


def _absolute(path: str) -> str:
    """A table's path for a task, which may run in another folder; that of a place is absolute by itself."""
    return path if is_url(path) else str(Path(path).absolute())


def _row_bytes(levels: Levels, columns: ParquetColumns, string_bytes: float) -> int:
    """Bytes of a row on its way, by which memory is reckoned: a task has up to six times as many, and 24.

    ``string_bytes``: of its id, if that is a string. Those count three times: to put strings into another order takes
    three numbers of 64 bits for each byte (``StringIds.select``).
    """
    ids = max(16, 3 * int(string_bytes)) if columns.ids else 0
    return len(levels) * levels.code_dtype.itemsize + 4 + ids


def _pieces(paths: Tables, groups: list[list[int]], most: int) -> list[Piece]:
    """Groups of one file together, up to ``most`` rows; a larger group in equal parts."""
    found: list[Piece] = []
    first = 0

    def add(path: str | Block, chosen: list[int], n: int, skip: int = 0) -> None:
        nonlocal first
        if n:
            found.append(Piece(path, tuple(chosen), first, n, skip))
            first += n

    for path, rows in zip(paths, groups, strict=True):
        held: list[int] = []
        n_held = 0
        for group, n in enumerate(rows):
            if n_held + n > most:
                add(path, held, n_held)
                held, n_held = [], 0
            if n > most:
                parts = -(-n // most)
                for begin, end in pairwise(n * i // parts for i in range(parts + 1)):
                    add(path, [group], end - begin, begin)
            elif n:
                held.append(group)
                n_held += n
        add(path, held, n_held)
    return found


# --- boundaries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limit:
    """What a range may have: ``memory`` for a task, of which a row takes ``each``; ``shards``, where it was given."""

    memory: int
    each: int
    shards: int | None

    @property
    def most(self) -> int:
        """Rows of a new range."""
        return max(self.memory // self.each, 1)

    def exceeds(self, n_rows: float) -> bool:
        """Whether a range that was there must not stay as it is."""
        return n_rows > GROWTH * self.most


@dataclass(frozen=True, slots=True)
class Sample:
    """Keys in order, and ``upto``: how many rows those before the i-th stand for, float64[n + 1]."""

    keys: npt.NDArray[np.uint64]
    upto: npt.NDArray[np.float64]

    def ends(self, boundaries: Sequence[int]) -> list[int]:
        """Where ranges begin and end among the keys."""
        inner = np.searchsorted(self.keys, np.asarray(boundaries, np.uint64)).tolist()
        return [0, *inner, len(self.keys)]

    def rows(self, boundaries: Sequence[int]) -> npt.NDArray[np.float64]:
        """Of each range, by estimate."""
        found: npt.NDArray[np.float64] = np.diff(self.upto[self.ends(boundaries)])
        return found

    def cut(self, begin: int, end: int, parts: int) -> list[int]:
        """First keys of equal parts of the keys begin .. end, but the first's; fewer where many keys are equal."""
        low, high = self.upto[begin], self.upto[end]
        wanted = low + (high - low) * np.arange(1, parts) / parts
        key = self.keys[np.searchsorted(self.upto[1:end], wanted)]
        before, after = np.searchsorted(self.keys, key), np.searchsorted(self.keys, key, "right")
        nearer = np.where(self.upto[after] - wanted < wanted - self.upto[before], after, before)
        found: list[int] = np.unique(self.keys[nearer[(nearer > begin) & (nearer < end)]]).tolist()
        return found


def _boundaries(
    runner: Runner, job: Job, paths: Tables, groups: list[list[int]], known: tuple[int, ...] | None, limit: Limit
) -> tuple[int, ...]:
    """First keys of the ranges but the first; ``known``: those of the catalogue that is there, if they fit it."""
    n = sum(map(sum, groups))
    wanted = limit.shards or max(-(-n // limit.most), 1)
    if wanted > MAX_SHARDS:
        least = -(-n * limit.each // MAX_SHARDS)
        raise LimitError(
            f"memory of {limit.memory:,} bytes for a task asks for {wanted:,} shards of {n:,} rows; "
            f"{MAX_SHARDS:,} are possible: give memory={least:,}, or a number of shards"
        )
    if known is not None and not limit.exceeds(n):
        return known
    if wanted == 1 or not n:
        _tell(job, (n,), 0, limit)
        return ()
    found = _sample(runner, job, paths, groups, max(SAMPLE_GROUPS, 2 * wanted))
    anew = tuple(found.cut(0, len(found.keys), wanted))
    boundaries = anew if known is None else known
    if known is not None and limit.shards is None:
        for (begin, end), rows in zip(pairwise(found.ends(known)), found.rows(known), strict=True):
            if limit.exceeds(rows):
                boundaries += tuple(found.cut(begin, end, -(-int(rows) // limit.most)))
        boundaries = tuple(sorted(boundaries)) if len(boundaries) < MAX_SHARDS else anew
    elif known is not None and limit.exceeds(found.rows(known).max()):
        boundaries = anew if GROWTH * found.rows(anew).max() < found.rows(known).max() else known
    starts = np.unique(found.keys, return_index=True)[1]
    _tell(job, found.rows(boundaries), np.diff(found.upto[[*starts, len(found.keys)]]).max(), limit)
    return boundaries


def _sample(runner: Runner, job: Job, paths: Tables, groups: list[list[int]], n_groups: int) -> Sample:
    """Of ``n_groups`` groups, evenly spread; there is at least one row."""
    single: list[Piece] = []
    for path, rows in zip(paths, groups, strict=True):
        single += [Piece(path, (group,), 0, n) for group, n in enumerate(rows) if n]
    chosen = [single[i] for i in np.unique(np.linspace(0, len(single) - 1, n_groups).astype(int))]
    each = min(max(SAMPLE_KEYS // len(chosen), 1 << 8), SAMPLE_ROWS)
    found = runner.map(sample, [(job, piece, each) for piece in chosen])
    weights = np.concatenate([np.full(len(keys), p.n_rows / len(keys)) for keys, p in zip(found, chosen, strict=True)])
    weights *= sum(map(sum, groups)) / weights.sum()
    keys = np.concatenate(found)
    order = np.argsort(keys, kind="stable")
    return Sample(keys[order], np.concatenate([[0], np.cumsum(weights[order])]))


def _tell(job: Job, rows: Iterable[float], alike: float, limit: Limit) -> None:
    """Log where a task will take more memory than it was given; ``alike``: the most rows of one key."""
    most = max(rows)
    if limit.exceeds(alike):
        depth = int(np.count_nonzero(np.cumsum([size.bit_length() for size in job.levels.sizes]) <= 64))
        reason = f"{alike:,.0f} rows have the same first {depth} codes, which cannot be parted"
    elif limit.exceeds(most) and limit.shards is not None:
        reason = f"shards={limit.shards} are too few"
    else:
        return
    _log.warning(
        "%s: to pack a shard will take some %d MB, more than the memory of %d MB for a task: %s",
        job.place.where, most * limit.each / 1e6, limit.memory / 1e6, reason,
    )  # fmt: skip
