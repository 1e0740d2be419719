"""Which items are live: one bit a leaf, with ranks, so that "is anything live below this node" costs two reads.

``words`` int32[W], bit ``u % 32`` of word ``u // 32`` is leaf u; ``before`` (int32, or int64 from 2^31 leaves on)
counts the live leaves before each word. ``W = U // 32 + 1``, so that the rank of U itself can be asked::

    rank(u) = before[u // 32] + popcount(words[u // 32] & ((1 << u % 32) - 1))
    a node with leaves low .. high has live items  ⇔  rank(high) > rank(low)

A leaf with several items is live when one of them is. Two bits an item and filter; the index itself is shared.

**A filter belongs to one index.** Bits say nothing about another catalogue's leaves, and with as many leaves it would
work and be wrong. So a filter carries its index's fingerprint, and whatever takes a filter compares it: every back end
and every file.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa._ext.items_step import FilterCore, live_before, live_words
from wfsa.errors import ItemError
from wfsa.items.bits import popcount
from wfsa.items.head import offset_dtype
from wfsa.items.index_data import IndexData
from wfsa.items.item_ids import rows_among
from wfsa.items.nodes import Int64s
from wfsa.storage import item_filter_file

_BLOCK: Final = 1 << 20  # rows of a bitmap that are looked at at once; a multiple of 32


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ItemFilter:
    """A set of live leaves of one index; made by ``of_rows``, ``of_ids``, ``of_leaves`` and ``load``.

    ``a & b``, ``a | b`` and ``~a`` are sets of leaves: where several items share a sequence, a leaf is live with any
    live item, so ``~a`` has the leaves of which no item is live in ``a``. Equal filters have the same index and leaves.
    """

    fingerprint: str
    n_leaves: int
    words: npt.NDArray[np.int32]
    before: npt.NDArray[Any]
    core: FilterCore = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "core", FilterCore(self.words, self.before))

    @classmethod
    def of_words(cls, fingerprint: str, n_leaves: int, words: npt.NDArray[np.int32]) -> ItemFilter:
        """From int32[U // 32 + 1] of the index with this fingerprint, bits past U clear; the array is kept."""
        before = np.empty(len(words), offset_dtype(n_leaves))
        live_before(words, before)
        return cls(fingerprint, n_leaves, words, before)

    @classmethod
    def of_leaves(cls, index: IndexData, live: Any) -> ItemFilter:
        """From bool[U], in the index's order. Raises ItemError on a wrong shape or type."""
        leaves = np.asarray(live)
        if leaves.dtype != np.bool_ or leaves.shape != (index.n_leaves,):
            raise ItemError(
                f"a filter over leaves needs bool[{index.n_leaves}], not {leaves.dtype}{list(leaves.shape)}"
            )
        return cls.of_words(index.fingerprint, index.n_leaves, _words(leaves))

    @classmethod
    def of_rows(cls, index: IndexData, live: Any) -> ItemFilter:
        """From bool[N], one an item, in the order in which the items were given to ``ItemIndex.build``.

        Raises ItemError on a wrong shape or type.
        """
        rows = np.asarray(live)
        if rows.dtype != np.bool_ or rows.shape != (index.n_items,):
            raise ItemError(f"a filter needs bool[{index.n_items}], not {rows.dtype}{list(rows.shape)}")
        return cls._of_row_words(index, _words(rows))

    @classmethod
    def _of_row_words(cls, index: IndexData, words: npt.NDArray[np.int32]) -> ItemFilter:
        """From int32[N // 32 + 1], a bit a row."""
        if index.item_order is not None or index.item_indptr is not None:
            threads = min(len(os.sched_getaffinity(0)), 8)
            words = live_words(words, index.item_order, index.item_indptr, index.n_leaves, threads)
        return cls.of_words(index.fingerprint, index.n_leaves, words)

    @classmethod
    def of_ids(cls, index: IndexData, ids: Any) -> ItemFilter:
        """From the ids of the live items: integers, or strings where the index has such, in a list, set or array.

        Raises ItemError on an id that no item has. O(N + n): the index's ids are looked through once, by hash.
        """
        return cls.of_rows(index, rows_among(index.ids, index.n_items, ids))

    @classmethod
    def of_bitmap(cls, index: IndexData, live: Any) -> ItemFilter:
        """From a ``pyroaring.BitMap`` or ``BitMap64`` of rows: of the live items, in what the index was built from.

        Raises ItemError on a place past the last item, TypeError on what is no bitmap.
        """
        if not hasattr(live, "to_array"):
            raise TypeError(f"a {type(live).__name__} is no bitmap of pyroaring")
        if live and live.max() >= index.n_items:
            raise ItemError(f"a bitmap has row {live.max():,}, of {index.n_items:,} items")
        words = np.zeros(index.n_items // 32 + 1, np.int32)
        for begin in range(0, index.n_items, _BLOCK):  # a number for every row of all would be 4 or 8 bytes an item
            end = min(begin + _BLOCK, index.n_items)
            mask = np.zeros(end - begin, np.bool_)
            mask[np.asarray((live & type(live)(range(begin, end))).to_array()) - begin] = True
            words[begin // 32 : end // 32 + 1] = _words(mask)
        return cls._of_row_words(index, words)

    def to_bitmap(self, index: IndexData) -> Any:
        """The rows of the live items as a ``pyroaring.BitMap64``; ImportError without that package.

        Items that have one sequence of codes are live together. Raises ItemError for another index than the filter's.
        """
        from pyroaring import BitMap64

        check_fingerprint(self.fingerprint, index.fingerprint)
        rows = np.zeros(index.n_items, np.bool_)
        for begin in range(0, self.n_leaves, _BLOCK):
            end = min(begin + _BLOCK, self.n_leaves)
            bits = self.words[begin // 32 : end // 32 + 1].view(np.uint8)
            live = np.unpackbits(bits, count=end - begin, bitorder="little").view(np.bool_)
            if index.item_indptr is not None:
                ends = np.asarray(index.item_indptr[begin : end + 1])
                live, begin, end = np.repeat(live, np.diff(ends)), int(ends[0]), int(ends[-1])
            if index.item_order is None:
                rows[begin:end] = live
            else:
                rows[np.asarray(index.item_order[begin:end])[live]] = True
        out = BitMap64()
        for begin in range(0, index.n_items, _BLOCK):
            found = np.flatnonzero(rows[begin : begin + _BLOCK]) + begin
            out |= BitMap64(array("Q", found.astype(np.uint64).tobytes()))
        return out

    @classmethod
    def load(cls, path: str | os.PathLike[str], index: IndexData) -> ItemFilter:
        """What :meth:`save` wrote, for the same index. Raises ArtifactError on a damaged file or another index's."""
        words = item_filter_file.load(path, index.fingerprint, index.n_leaves)
        return cls.of_words(index.fingerprint, index.n_leaves, words)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, a bit a leaf; replaces an existing one in one step."""
        item_filter_file.save(path, self.fingerprint, self.n_leaves, self.words)

    def __and__(self, other: ItemFilter) -> ItemFilter:
        """Leaves that are live in both."""
        if not isinstance(other, ItemFilter):
            return NotImplemented
        check_filters(other, 0, self.fingerprint)
        return ItemFilter.of_words(self.fingerprint, self.n_leaves, self.words & other.words)

    def __or__(self, other: ItemFilter) -> ItemFilter:
        """Leaves that are live in either."""
        if not isinstance(other, ItemFilter):
            return NotImplemented
        check_filters(other, 0, self.fingerprint)
        return ItemFilter.of_words(self.fingerprint, self.n_leaves, self.words | other.words)

    def __invert__(self) -> ItemFilter:
        """Leaves that are not live."""
        words = ~self.words
        words[-1] &= np.int32((1 << (self.n_leaves & 31)) - 1)
        return ItemFilter.of_words(self.fingerprint, self.n_leaves, words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ItemFilter):
            return NotImplemented
        return self.fingerprint == other.fingerprint and np.array_equal(self.words, other.words)

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.n_live))

    def __repr__(self) -> str:
        return f"ItemFilter({self.n_live:,} of {self.n_leaves:,} sequences live, of index {self.fingerprint})"

    def rank(self, leaves: Int64s) -> Int64s:
        """Live leaves before each of ``leaves`` (0 .. U)."""
        word = leaves >> 5
        below = self.words[word].view(np.uint32) & ((np.uint32(1) << (leaves & 31).astype(np.uint32)) - np.uint32(1))
        before: Int64s = self.before[word].astype(np.int64)
        return before + popcount(below)

    def any_live(self, low: Int64s, high: Int64s) -> npt.NDArray[np.bool_]:
        """Whether a leaf of ``low .. high`` is live."""
        return self.rank(high) > self.rank(low)

    @property
    def n_live(self) -> int:
        """Live leaves."""
        return int(self.before[-1]) + int(popcount(self.words[-1:])[0])


def _words(live: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """bool[n] as int32[n // 32 + 1], bit ``i % 32`` of word ``i // 32``."""
    words = np.zeros(len(live) // 32 + 1, np.int32)
    words.view(np.uint8)[: -(-len(live) // 8)] = np.packbits(live, bitorder="little")
    return words


Filters = ItemFilter | Sequence[ItemFilter | None] | None


def filter_of_request(filters: Filters, request: int) -> ItemFilter | None:
    """One filter for all requests, or one (or None) a request."""
    return filters if filters is None or isinstance(filters, ItemFilter) else filters[request]


def check_filters(filters: Filters, n_requests: int, fingerprint: str) -> None:
    """Raise ItemError on filters of another index than the one with this fingerprint, or not one a request."""
    if filters is None:
        return
    listed = [filters] if isinstance(filters, ItemFilter) else list(filters)
    if not isinstance(filters, ItemFilter) and len(listed) != n_requests:
        raise ItemError(f"{len(listed)} filters for {n_requests} requests")
    for one in listed:
        if one is not None:
            if not isinstance(one, ItemFilter):
                raise ItemError(f"a {type(one).__name__} in place of an ItemFilter")
            check_fingerprint(one.fingerprint, fingerprint)


def check_fingerprint(of_filter: str, of_index: str) -> None:
    """Raise ItemError where a filter belongs to another index."""
    if of_filter != of_index:
        raise ItemError(
            f"a filter of another index (its fingerprint is {of_filter}, this index has {of_index}); "
            "make it from this index: ItemFilter.of_rows(index, …) or of_ids"
        )


def stack_filters(
    filters: Filters, n_requests: int, fingerprint: str
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any], Int64s] | None:
    """For a device: words int32[F, W] and before int[F, W] of the F different filters, and each request's row (or -1).

    None where no request has a filter. Raises ItemError as ``check_filters`` does.
    """
    check_filters(filters, n_requests, fingerprint)
    if filters is None:
        return None
    listed = [filters] * n_requests if isinstance(filters, ItemFilter) else list(filters)
    kept = {id(one): one for one in listed if one is not None}
    if not kept:
        return None
    rows = {key: row for row, key in enumerate(kept)}
    which = np.asarray([-1 if one is None else rows[id(one)] for one in listed], np.int64)
    return np.stack([one.words for one in kept.values()]), np.stack([one.before for one in kept.values()]), which
