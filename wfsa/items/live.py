"""A catalogue that changes: one large index, a small one of what was added, and a filter of what was removed.

An index is immutable. Additions go to a second, small index (the *delta*), built anew at each addition; removals clear
bits of a filter over either. :class:`LiveItems` is one state of this, immutable, and steps through both indexes at
once; :class:`Catalogue` holds the current one and merges the delta into a new large index, on demand or in a thread.

A node is a pair int64[…, 2]: the prefix's node in the base and in the delta, -1 where it has none there. What is
allowed is the union. Results are those of an index built from the live items alone, in the order base, additions.

Cost: an addition sorts the delta, a removal rebuilds a filter (N bits), a step reads the children of both nodes in
NumPy and C++. Keep the delta small (a percent of the base) and merge.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa._ext.items_step import log_sum_exp
from wfsa.errors import ItemError
from wfsa.items.beams import Beams, Normalise, check_normalise
from wfsa.items.bits import pack_bits
from wfsa.items.filter import ItemFilter
from wfsa.items.index import ItemIndex
from wfsa.items.nodes import ENDED, NONE, Int64s
from wfsa.items.rows import ItemChunk, Rows, read_rows

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LiveFilter:
    """Live items of a request, over the base and over the delta of one :class:`LiveItems`."""

    base: ItemFilter
    delta: ItemFilter


LiveFilters = LiveFilter | Sequence[LiveFilter | None] | None


@dataclass(frozen=True, slots=True)
class LiveItems:
    """One state of a changing catalogue; both indexes have the same levels.

    ``live`` is what was not removed, by leaf; ``removed`` bool[N] are the base's removed rows (a leaf may have others).
    ``has_prefix_items``: whether an item of either index is a proper prefix of another, of either.
    """

    base: ItemIndex
    delta: ItemIndex
    live: LiveFilter
    removed: npt.NDArray[np.bool_]
    has_prefix_items: bool

    @property
    def n_items(self) -> int:
        """Live items."""
        return self.base.n_items - int(np.count_nonzero(self.removed)) + self.delta.n_items

    @property
    def root(self) -> Int64s:
        """The node of the empty prefix, int64[2]."""
        roots: Int64s = self._prune(np.asarray([[self.base.root, self.delta.root]], np.int64), None)[0]
        return roots

    def filter_of_ids(self, ids: Any) -> LiveFilter:
        """The items with these ids, without those removed. Ids that no item has are ignored here."""
        wanted = np.asarray(ids, np.int64)
        parts = []
        for index, live in ((self.base, self.live.base), (self.delta, self.live.delta)):
            rows = np.isin(index.ids, wanted) if index.ids is not None else np.isin(np.arange(index.n_items), wanted)
            parts.append(ItemFilter.of_rows(index, rows) & live)
        return LiveFilter(*parts)

    def children(self, nodes: Int64s, filters: LiveFilters = None) -> tuple[Int64s, npt.NDArray[np.int32], Int64s]:
        """Of int64[…, 2], flattened: indptr int64[n + 1], tokens int32, node pairs int64[total, 2]; tokens rise."""
        pairs = self._pairs(nodes)
        n = pairs.shape[0]
        base, delta = self._filters(filters, nodes.shape[0] if nodes.ndim > 1 else 1)
        owner, tokens, which, found = [], [], [], []
        for number, (index, live) in enumerate(((self.base, base), (self.delta, delta))):
            part = np.ascontiguousarray(pairs[:, number]).reshape(nodes.shape[:-1])
            indptr, some, following = index.children(part, live)
            owner.append(np.repeat(np.arange(n), np.diff(indptr)))
            tokens.append(some)
            which.append(np.full(len(some), number))
            found.append(following)
        owners, all_tokens, sides, all_nodes = map(np.concatenate, (owner, tokens, which, found))
        order = np.lexsort((sides, all_tokens, owners))
        owners, all_tokens, sides, all_nodes = owners[order], all_tokens[order], sides[order], all_nodes[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (owners[1:] != owners[:-1]) | (all_tokens[1:] != all_tokens[:-1])
        group = np.cumsum(new) - 1
        merged = np.full((int(new.sum()), 2), NONE, np.int64)
        merged[group, sides] = all_nodes
        counts = np.bincount(owners[new], minlength=n)
        return np.concatenate([[0], np.cumsum(counts)]), all_tokens[new].astype(np.int32), merged

    def allowed(self, nodes: Int64s, filters: LiveFilters = None) -> npt.NDArray[np.int32]:
        """Packed masks int32[…, words] of int64[…, 2]."""
        indptr, tokens, _ = self.children(nodes, filters)
        n_words = self.base.levels.n_words
        present = np.zeros((len(indptr) - 1, n_words * 32), np.bool_)
        present[np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), tokens] = True
        return pack_bits(present).reshape(*nodes.shape[:-1], n_words)

    def mask_logits(self, logits: npt.NDArray[Any], nodes: Int64s, filters: LiveFilters = None) -> npt.NDArray[Any]:
        """A copy of ``logits[…, V]`` with -inf at what is not allowed."""
        indptr, tokens, _ = self.children(nodes, filters)
        flat = np.ascontiguousarray(logits).reshape(len(indptr) - 1, -1)
        out = np.full_like(flat, -np.inf)
        at = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        out[at, tokens] = flat[at, tokens]
        return out.reshape(logits.shape)

    def advance(self, nodes: Int64s, tokens: npt.NDArray[Any], filters: LiveFilters = None) -> Int64s:
        """Node pairs after one token each; (-1, -1) where it is not allowed."""
        self._pairs(nodes)
        base, delta = self._filters(filters, nodes.shape[0] if nodes.ndim > 1 else 1)
        return np.stack(
            [
                self.base.advance(np.ascontiguousarray(nodes[..., 0]), tokens, base),
                self.delta.advance(np.ascontiguousarray(nodes[..., 1]), tokens, delta),
            ],
            axis=-1,
        )

    def item_ids(self, nodes: Int64s) -> list[list[int]]:
        """For each of the flattened node pairs the ids of the live items that end there."""
        return [self._ids_at(int(b), int(d)) for b, d in self._pairs(nodes)]

    def start(self, n_requests: int, width: int) -> Beams:
        """One valid beam a request at the root; ``nodes`` is int64[B, M, 2] in these beams."""
        beams = Beams.start(self.base, n_requests, width)
        nodes = np.full((n_requests, width, 2), NONE, np.int64)
        nodes[:, 0] = self.root
        valid = (nodes >= 0).any(axis=-1)
        return replace(beams, nodes=nodes, valid=valid, scores=np.where(valid, 0.0, -np.inf).astype(np.float32))

    def beam_step(
        self,
        beams: Beams,
        logits: Any,
        *,
        width: int | None = None,
        normalise: Normalise = "full",
        filters: LiveFilters = None,
    ) -> Beams:
        """As ``ItemIndex.beam_step``, for ``nodes`` int64[B, M, 2]."""
        check_normalise(normalise)
        logits = np.asarray(logits, np.float32)
        n_requests, n_beams = beams.nodes.shape[:2]
        if logits.shape != (n_requests, n_beams, self.base.logits_size):
            want = [n_requests, n_beams, self.base.logits_size]
            raise ItemError(f"logits have shape {list(logits.shape)}, not {want}")
        if self.base.levels.end_token is None and self.has_prefix_items:
            raise ItemError("an item is a prefix of another: beam_step needs an index built with an end_token")
        width = n_beams if width is None else width
        indptr, tokens, following = self.children(beams.nodes, filters)
        done = self._finished(beams.nodes) & beams.valid
        going = beams.valid & ~done
        owner = np.repeat(np.arange(n_requests * n_beams), np.diff(indptr))
        keep = going.reshape(-1)[owner]
        owner, tokens, following = owner[keep], tokens[keep].astype(np.int64), following[keep]
        values = logits.reshape(n_requests * n_beams, -1)[owner, tokens]
        norms = self._norms(beams.nodes, logits, going, normalise, owner, values)
        if np.isnan(values).any() or np.isposinf(values).any():
            bad = divmod(int(owner[np.isnan(values) | np.isposinf(values)][0]), n_beams)
            raise ItemError(f"logits of request {bad[0]}, beam {bad[1]} have NaN or +inf")
        with np.errstate(invalid="ignore"):
            scores = (beams.scores.reshape(-1)[owner] - norms[owner]) + values
        stay = np.flatnonzero(done.reshape(-1))
        stay = stay[(self._prune(beams.nodes, filters).reshape(-1, 2)[stay] >= 0).any(axis=-1)]
        owner, tokens = np.concatenate([owner, stay]), np.concatenate([tokens, np.full(len(stay), -1)])
        scores = np.concatenate([scores, beams.scores.reshape(-1)[stay]])
        following = np.concatenate([following, beams.nodes.reshape(-1, 2)[stay]])
        good = scores > -np.inf
        owner, tokens, scores, following = owner[good], tokens[good], scores[good], following[good]
        order = np.lexsort((tokens, owner, -scores, owner // n_beams))
        request = owner[order] // n_beams
        place = np.arange(len(order)) - np.searchsorted(request, request)
        order, request, place = order[place < width], request[place < width], place[place < width]
        out = Beams(
            np.full((n_requests, width, 2), NONE, np.int64),
            np.full((n_requests, width), -np.inf, np.float32),
            np.zeros((n_requests, width), np.bool_),
            np.zeros((n_requests, width), np.int32),
            np.full((n_requests, width), -1, np.int32),
            np.full((n_requests, width, beams.sequences.shape[2] + 1), -1, np.int32),
        )
        out.nodes[request, place], out.scores[request, place] = following[order], scores[order]
        out.valid[request, place] = True
        out.parents[request, place], out.tokens[request, place] = owner[order] % n_beams, tokens[order]
        out.sequences[request, place, :-1] = beams.sequences.reshape(n_requests * n_beams, -1)[owner[order]]
        out.sequences[request, place, -1] = tokens[order]
        return out

    def items(self) -> Iterator[tuple[Rows, Int64s]]:
        """All live items, as rows and ids by chunks: the base's in sorted order, then the delta's."""
        for index, live in ((self.base, self.live.base), (self.delta, self.live.delta)):
            for begin in range(0, index.n_leaves, _CHUNK):
                leaves = np.arange(begin, min(begin + _CHUNK, index.n_leaves))
                leaves = leaves[live.any_live(leaves, leaves + 1)]
                ids, counts = self._live_ids(index, leaves)
                if len(ids):
                    codes = np.repeat(index.layout.sequences(leaves), counts, axis=0)
                    offsets = np.concatenate([[0], np.cumsum((codes >= 0).sum(axis=1))]).astype(np.int64)
                    yield read_rows((codes[codes >= 0], offsets), index.n_levels), ids

    # --- parts ----------------------------------------------------------------------------------------------------

    def _live_ids(self, index: ItemIndex, leaves: Int64s) -> tuple[Int64s, Int64s]:
        """Ids of the live items of leaves, one leaf after another, and how many each has."""
        if index.item_indptr is None:
            rows, counts = leaves, np.ones(len(leaves), np.int64)
        else:
            begin = index.item_indptr[leaves].astype(np.int64)
            counts = index.item_indptr[leaves + 1] - begin
            rows = np.repeat(begin - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        if index.item_order is not None:
            rows = index.item_order[rows].astype(np.int64)
        if index is self.base:
            keep = ~self.removed[rows]
            owner = np.repeat(np.arange(len(leaves)), counts)[keep]
            rows, counts = rows[keep], np.bincount(owner, minlength=len(leaves))
        return rows if index.ids is None else index.ids[rows], counts

    def _ids_at(self, base: int, delta: int) -> list[int]:
        found: list[int] = []
        for index, node in ((self.base, base), (self.delta, delta)):
            leaf = index.layout.terminals(np.asarray([node], np.int64))
            if leaf[0] >= 0:
                found += self._live_ids(index, leaf)[0].tolist()
        return found

    def _pairs(self, nodes: Int64s) -> Int64s:
        if nodes.dtype != np.int64 or nodes.ndim < 1 or nodes.shape[-1] != 2:
            raise ItemError(f"nodes are {nodes.dtype}{list(nodes.shape)}, not int64[…, 2]")
        return nodes.reshape(-1, 2)

    def _filters(
        self, filters: LiveFilters, n_requests: int
    ) -> tuple[ItemFilter | list[ItemFilter | None], ItemFilter | list[ItemFilter | None]]:
        """Filters of both sides; without a request's own, what was not removed."""
        if filters is None or isinstance(filters, LiveFilter):
            one = filters or self.live
            return one.base, one.delta
        if len(filters) != n_requests:
            raise ItemError(f"{len(filters)} filters for {n_requests} requests")
        given = [one or self.live for one in filters]
        return [one.base for one in given], [one.delta for one in given]

    def _prune(self, nodes: Int64s, filters: LiveFilters) -> Int64s:
        """-1 in place of nodes without live items."""
        out = nodes.copy()
        base, delta = self._filters(filters, nodes.shape[0])
        for side, index, given in ((0, self.base, base), (1, self.delta, delta)):
            low, high = index.layout.intervals(np.ascontiguousarray(nodes[..., side]))
            if isinstance(given, ItemFilter):
                out[..., side][~given.any_live(low, high)] = NONE
            else:
                for request, one in enumerate(given):
                    assert one is not None
                    out[request, ..., side][~one.any_live(low[request], high[request])] = NONE
        return out

    def _finished(self, nodes: Int64s) -> npt.NDArray[np.bool_]:
        """Nodes from which nothing follows in the catalogue, whatever a request's filter says."""
        indptr, _, _ = self.children(nodes)
        ended = ((nodes >> 50 == ENDED) & (nodes >= 0)).any(axis=-1)
        childless: npt.NDArray[np.bool_] = (np.diff(indptr) == 0).reshape(nodes.shape[:-1])
        finished: npt.NDArray[np.bool_] = np.logical_or(ended, childless)
        return finished

    def _norms(
        self,
        nodes: Int64s,
        logits: npt.NDArray[np.float32],
        going: npt.NDArray[np.bool_],
        normalise: Normalise,
        owner: Int64s,
        values: npt.NDArray[np.float32],
    ) -> npt.NDArray[np.float32]:
        """A norm a flat beam; +inf (so that nothing is a candidate) over nothing."""
        norms = np.zeros(going.size, np.float32)
        if normalise == "none":
            return norms
        flat, levels = logits.reshape(going.size, -1), self.base.levels
        ends = np.searchsorted(owner, np.arange(going.size + 1))
        for beam in np.flatnonzero(going.reshape(-1)).tolist():
            if normalise == "full":
                row = flat[beam]
            elif normalise == "valid":
                row = values[ends[beam] : ends[beam + 1]]
            else:
                level = int(nodes.reshape(-1, 2)[beam].max() >> 50)
                begin, size = (levels.offsets[level], levels.sizes[level]) if level < len(levels) else (0, 0)
                row = flat[beam, begin : begin + size]
                if levels.end_token is not None:
                    row = np.append(row, flat[beam, levels.end_token])
            norm = log_sum_exp(np.ascontiguousarray(row))
            if np.isnan(norm):
                request, number = divmod(beam, going.shape[1])
                raise ItemError(f"logits of request {request}, beam {number} have NaN or +inf")
            norms[beam] = np.inf if norm == -np.inf else norm
        return norms


def _crosses(base: ItemIndex, delta: ItemIndex) -> bool:
    """Whether an item of one index is a proper prefix of an item of the other."""
    sequences = delta.layout.sequences(np.arange(delta.n_leaves))
    nodes = np.full(len(sequences), base.root, np.int64)
    for level in range(base.n_levels):
        codes = sequences[:, level].astype(np.int64)
        ended = codes < 0
        if np.any(ended & (base.n_below(nodes) > (base.layout.terminals(nodes) >= 0))):
            return True
        if np.any(~ended & (base.layout.terminals(nodes) >= 0)):
            return True
        tokens = np.where(ended, -1, codes + base.levels.offsets[level])
        nodes = base.advance(nodes, tokens)
    return False


def _small_index(rows: list[tuple[int, ...]], ids: list[int], base: ItemIndex) -> ItemIndex:
    """An index of a few items with the levels of another."""
    levels = base.levels
    return ItemIndex.build(
        read_rows(rows, base.n_levels),
        np.asarray(ids, np.int64),
        levels.sizes,
        offsets=levels.offsets,
        logits_size=levels.logits_size,
        end_token=levels.end_token,
        head_depth=0,
        threads=1,
    )


class Catalogue:
    """The current state of a changing catalogue; may be read and changed from several threads.

    Every item has an id of its own. ``Catalogue(index)`` takes over an index's items; O(N log N) where it has ids.
    """

    def __init__(self, base: ItemIndex) -> None:
        if base.item_order is None:
            raise ItemError('a catalogue needs items with ids: not an index built with item_ids="rank"')
        self._lock, self._merge_lock = threading.RLock(), threading.Lock()
        self._merging: threading.Thread | None = None
        self._journal: list[tuple[str, Any, list[int]]] = []
        self._take(base)

    def _take(self, base: ItemIndex) -> None:
        """Begin anew with an index and an empty delta."""
        self._added: dict[int, tuple[int, ...]] = {}
        self._order = None if base.ids is None else np.argsort(base.ids, kind="stable")
        if self._order is not None and base.ids is not None:
            ordered = base.ids[self._order]
            if np.any(ordered[1:] == ordered[:-1]):
                raise ItemError("several items have the same id")
        delta = _small_index([], [], base)
        live = LiveFilter(_all_live(base), _all_live(delta))
        self._state = LiveItems(base, delta, live, np.zeros(base.n_items, np.bool_), base.has_prefix_items)

    @property
    def items(self) -> LiveItems:
        """The present state; it does not change when the catalogue does."""
        return self._state

    @property
    def n_added(self) -> int:
        """Items in the delta."""
        return len(self._added)

    def add(self, sids: Any, ids: Any) -> None:
        """Add items; raises ItemError, and adds nothing, on bad codes or an id that is live already."""
        rows = read_rows(sids)
        new_ids = [int(x) for x in np.asarray(ids).reshape(-1)]
        if len(new_ids) != len(rows):
            raise ItemError(f"{len(new_ids)} ids for {len(rows)} items")
        with self._lock:
            for number, item_id in enumerate(new_ids):
                if item_id in self._added or self._live_row(item_id) >= 0 or item_id in new_ids[:number]:
                    raise ItemError(f"the id {item_id} is live already, or given twice")
            listed = [tuple(rows.row(i)) for i in range(len(rows))]
            self._change({**self._added, **dict(zip(new_ids, listed, strict=True))}, self._state.removed)
            self._journal.append(("add", listed, new_ids))

    def remove(self, ids: Any) -> None:
        """Remove items; raises ItemError, and removes nothing, on an id that is not live."""
        gone = [int(x) for x in np.asarray(ids).reshape(-1)]
        with self._lock:
            added, removed = dict(self._added), self._state.removed.copy()
            for item_id in gone:
                row = self._live_row(item_id)
                if item_id in added:
                    del added[item_id]
                elif row >= 0 and not removed[row]:
                    removed[row] = True
                else:
                    raise ItemError(f"no live item has the id {item_id}, or it is given twice")
            self._change(added, removed)
            self._journal.append(("remove", None, gone))

    def _change(self, added: dict[int, tuple[int, ...]], removed: npt.NDArray[np.bool_]) -> None:
        state = self._state
        delta, live, prefixes = state.delta, state.live, state.has_prefix_items
        if added != self._added:
            delta = _small_index(list(added.values()), list(added), state.base)
            prefixes = state.base.has_prefix_items or delta.has_prefix_items or _crosses(state.base, delta)
            live = replace(live, delta=_all_live(delta))
        if not np.array_equal(removed, state.removed):
            live = replace(live, base=ItemFilter.of_rows(state.base, ~removed))
        self._added = added
        self._state = LiveItems(state.base, delta, live, removed, prefixes)

    def _live_row(self, item_id: int) -> int:
        """The base's row of a live id, or -1."""
        base = self._state.base
        if self._order is None or base.ids is None:
            row = item_id if 0 <= item_id < base.n_items else -1
        else:
            at = int(np.searchsorted(base.ids, item_id, sorter=self._order))
            row = int(self._order[at]) if at < len(self._order) else -1
            if row >= 0 and base.ids[row] != item_id:
                row = -1
        return -1 if row < 0 or self._state.removed[row] else row

    def merge(self) -> ItemIndex:
        """Build one index from what is live, make it the base, and return it. Changes made meanwhile are kept."""
        with self._merge_lock:
            with self._lock:
                state, self._journal = self._state, []
            base = state.base
            merged = ItemIndex.build(
                (ItemChunk(rows, ids) for rows, ids in state.items()),
                None,
                base.levels.sizes,
                offsets=base.levels.offsets,
                logits_size=base.logits_size,
                end_token=base.levels.end_token,
                layout=base.layout.name,
            )
            with self._lock:
                journal, self._journal = self._journal, []
                self._take(merged)
                for what, rows, ids in journal:
                    if what == "add":
                        self.add(rows, ids)
                    else:
                        self.remove(ids)
            return merged

    def merge_in_background(self) -> threading.Thread:
        """Start :meth:`merge` in a thread and return it; while one runs, that one."""
        with self._lock:
            if self._merging is None or not self._merging.is_alive():
                self._merging = threading.Thread(target=self.merge, name="wfsa-items-merge", daemon=True)
                self._merging.start()
            return self._merging


def _all_live(index: ItemIndex) -> ItemFilter:
    return ItemFilter.of_leaves(np.ones(index.n_leaves, np.bool_))
