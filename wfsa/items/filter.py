"""Which items are live: one bit a leaf, with ranks, so that "is anything live below this node" costs two reads.

``words`` int32[W], bit ``u % 32`` of word ``u // 32`` is leaf u; ``before`` (int32, or int64 from 2^31 leaves on)
counts the live leaves before each word. ``W = U // 32 + 1``, so that the rank of U itself can be asked::

    rank(u) = before[u // 32] + popcount(words[u // 32] & ((1 << u % 32) - 1))
    a node with leaves low .. high has live items  ⇔  rank(high) > rank(low)

A leaf with several items is live when one of them is. Two bits an item and filter; the index itself is shared.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wfsa._ext.items_step import FilterCore, live_before, live_words
from wfsa.errors import ItemError
from wfsa.items.bits import popcount
from wfsa.items.head import offset_dtype
from wfsa.items.nodes import Int64s

if TYPE_CHECKING:
    from wfsa.items.index import ItemIndex


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """A set of live leaves of one index; made by the class methods."""

    n_leaves: int
    words: npt.NDArray[np.int32]
    before: npt.NDArray[Any]
    core: FilterCore = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "core", FilterCore(self.words, self.before))

    @classmethod
    def of_words(cls, n_leaves: int, words: npt.NDArray[np.int32]) -> ItemFilter:
        """From int32[U // 32 + 1], bits past U clear; the array is kept."""
        before = np.empty(len(words), offset_dtype(n_leaves))
        live_before(words, before)
        return cls(n_leaves, words, before)

    @classmethod
    def of_leaves(cls, live: npt.NDArray[np.bool_]) -> ItemFilter:
        """From bool[U], in the index's order."""
        return cls.of_words(len(live), _words(live))

    @classmethod
    def of_rows(cls, index: ItemIndex, live: Any) -> ItemFilter:
        """From bool[N], one an item, in the order in which the items were given to ``ItemIndex.build``.

        Raises ItemError on a wrong shape or type.
        """
        rows = np.asarray(live)
        if rows.dtype != np.bool_ or rows.shape != (index.n_items,):
            raise ItemError(f"a filter needs bool[{index.n_items}], not {rows.dtype}{list(rows.shape)}")
        if index.item_order is None and index.item_indptr is None:
            return cls.of_leaves(rows)
        threads = min(len(os.sched_getaffinity(0)), 8)
        words = live_words(_words(rows), index.item_order, index.item_indptr, index.n_leaves, threads)
        return cls.of_words(index.n_leaves, words)

    @classmethod
    def of_ids(cls, index: ItemIndex, ids: Any) -> ItemFilter:
        """From the ids of the live items; unknown ids are an ItemError."""
        rows = np.zeros(index.n_items, np.bool_)
        rows[index.rows_of_ids(ids)] = True
        return cls.of_rows(index, rows)

    def __and__(self, other: ItemFilter) -> ItemFilter:
        """Leaves that are live in both."""
        check_filters(other, 0, self.n_leaves)
        return ItemFilter.of_words(self.n_leaves, self.words & other.words)

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


def check_filters(filters: Filters, n_requests: int, n_leaves: int) -> None:
    """Raise ItemError on filters of another index, or not one a request."""
    if filters is None:
        return
    listed = [filters] if isinstance(filters, ItemFilter) else list(filters)
    if not isinstance(filters, ItemFilter) and len(listed) != n_requests:
        raise ItemError(f"{len(listed)} filters for {n_requests} requests")
    for one in listed:
        if one is not None and one.n_leaves != n_leaves:
            raise ItemError(f"a filter over {one.n_leaves} leaves for an index with {n_leaves}")


def stack_filters(
    filters: Filters, n_requests: int, n_leaves: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any], Int64s] | None:
    """For a device: words int32[F, W] and before int[F, W] of the F different filters, and each request's row (or -1).

    None where no request has a filter. Raises ItemError as ``check_filters`` does.
    """
    check_filters(filters, n_requests, n_leaves)
    if filters is None:
        return None
    listed = [filters] * n_requests if isinstance(filters, ItemFilter) else list(filters)
    kept = {id(one): one for one in listed if one is not None}
    if not kept:
        return None
    rows = {key: row for row, key in enumerate(kept)}
    which = np.asarray([-1 if one is None else rows[id(one)] for one in listed], np.int64)
    return np.stack([one.words for one in kept.values()]), np.stack([one.before for one in kept.values()]), which
