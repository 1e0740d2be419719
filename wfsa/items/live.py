"""A catalogue that changes: one large index, a small one of what was added, and a filter of what was removed.

An index is immutable. Additions go to a second, small index (the *delta*), built anew at each addition; removals clear
bits of a filter over either. :class:`LiveItems` is one state of this, immutable, and steps through both indexes at
once; :class:`Catalogue` holds the current one and merges the delta into a new large index, on demand or in a thread.

A node is a pair int64[…, 2]: the prefix's node in the base and in the delta, -1 where it has none there. What is
allowed is the union. Results are those of an index built from the live items alone, in the order base, additions.

Cost: an addition sorts the delta, a removal rebuilds a filter (N bits), a filter is laid over a state once (N bits), a
step reads the children of both nodes in NumPy and C++. An id that is added keeps a number until the next merge, also
when its item is removed. Ids are looked up in the base's map (``wfsa/items/id_map.py``). Keep the delta small (a
percent of the base) and merge.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa._ext.items_step import log_sum_exp
from wfsa.errors import ItemError
from wfsa.items import answers
from wfsa.items.beams import Beams, Normalise, check_normalise
from wfsa.items.bits import pack_bits
from wfsa.items.filter import AnyFilter, Filters, ItemFilter, check_flags
from wfsa.items.index import ItemIndex
from wfsa.items.item_ids import (
    Ids,
    ItemId,
    Missing,
    StringIds,
    check_missing,
    ids_at,
    read_ids,
    select_ids,
    wanted_ids,
)
from wfsa.items.levels import Levels
from wfsa.items.live_filter import LiveFilter, LiveFilters, check_lineage
from wfsa.items.nodes import ENDED, NONE, Int64s
from wfsa.items.rows import ItemChunk, Rows, read_rows

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiveItems:
    """One state of a changing catalogue; both indexes have the same levels.

    live                what was not removed of the base; all of the delta is live
    removed             bool[N]: the base's removed rows, those that were replaced among them
    numbers             int64[delta.n_items]: the number of each row of the delta (``wfsa/items/live_filter.py``)
    n_numbers           how many numbers have been given: N, and one for each other id that was ever added
    has_prefix_items    whether an item of either index is a proper prefix of another, of either
    lineage             what filters are known by
    """

    base: ItemIndex
    delta: ItemIndex
    live: ItemFilter
    removed: npt.NDArray[np.bool_]
    numbers: Int64s
    n_numbers: int
    has_prefix_items: bool
    lineage: object

    def __len__(self) -> int:
        return self.n_items

    def __repr__(self) -> str:
        gone = int(np.count_nonzero(self.removed))
        return (
            f"LiveItems({self.n_items:,} items of {self.levels.describe()}: "
            f"{self.base.n_items:,} in the base, less {gone:,} removed, and {self.delta.n_items:,} added)"
        )

    @property
    def n_items(self) -> int:
        """Live items."""
        return self.base.n_items - int(np.count_nonzero(self.removed)) + self.delta.n_items

    @property
    def levels(self) -> Levels:
        """Of both indexes."""
        return self.base.levels

    @property
    def root(self) -> Int64s:
        """The node of the empty prefix, int64[2]."""
        roots: Int64s = self._prune(np.asarray([[self.base.root, self.delta.root]], np.int64), None)[0]
        return roots

    def filter_of_ids(self, ids: Any, *, missing: Missing = "error") -> LiveFilter:
        """The items with these ids, without those removed; in time of the ids given, and a bit an item.

        missing   "error": raise ItemError on an id that no live item has; "ignore": leave such ids out

        Raises ItemError on ids of another kind than the items'.
        """
        check_missing(missing)
        wanted = wanted_ids(self.base.ids, ids)
        positions, counts = self.base.id_map.get().find(wanted)
        known = counts > 0
        known[known] = self.live.is_live(positions)
        rows, added = self.delta.id_map.get().find(wanted)
        found = known | (added > 0)
        if missing == "error" and not found.all():
            raise ItemError(
                f"no live item has the id {ids_at(wanted, np.flatnonzero(~found)[:1])[0]!r}; "
                'missing="ignore" leaves such ids out'
            )
        n_base, numbers = self.base.n_items, self.numbers[self.delta.rows_at(rows)]
        inside = np.concatenate([positions[known[counts > 0]], numbers[numbers < n_base]])
        later = np.zeros(self.n_numbers - n_base, np.bool_)
        later[numbers[numbers >= n_base] - n_base] = True
        return LiveFilter(ItemFilter.of_positions(self.base, inside), later, False, self.lineage)

    def filter_of_rows(self, base: Any, delta: Any) -> LiveFilter:
        """From a bool an item: bool[base.n_items] in the base's input order, bool[delta.n_items] in that of additions.

        Removed items stay out, whatever their bool says. Raises ItemError on wrong shapes or types.
        """
        kept = check_flags(base, self.base.n_items) & ~self.removed
        inside = self.numbers[check_flags(delta, self.delta.n_items)]
        n_base = self.base.n_items
        kept[self.base.rows_at(inside[inside < n_base])] = True  # ids of the base whose items were replaced
        added = np.zeros(self.n_numbers - n_base, np.bool_)
        added[inside[inside >= n_base] - n_base] = True
        return LiveFilter(ItemFilter.of_rows(self.base, kept), added, False, self.lineage)

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
        n_words = self.levels.n_words
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

    def item_ids(self, nodes: Int64s, filters: LiveFilters = None) -> list[list[ItemId]]:
        """For each of the flattened node pairs the ids of the live items that end there: the base's, then the delta's.

        ``filters`` are those of the step: without them, items that a filter has refused are returned when they share a
        sequence with a live one.
        """
        self._pairs(nodes)
        base, delta = self._filters(filters, nodes.shape[0] if nodes.ndim > 1 else 1)
        sides = nodes.reshape(1, 2) if nodes.ndim == 1 else nodes
        in_base, in_delta = self.base.item_ids(sides[..., 0], base), self.delta.item_ids(sides[..., 1], delta)
        return [some + others for some, others in zip(in_base, in_delta, strict=True)]

    def first_item(self, nodes: Int64s, filters: LiveFilters = None) -> npt.NDArray[Any]:
        """The id of the first live item that ends at each of the node pairs int64[…, 2]; arguments as :meth:`item_ids`.

        Shape […]; int64 with -1 where none ends; where ids are strings, objects with None there.
        """
        names = isinstance(self.base.ids, StringIds)
        firsts = [ids[0] if ids else None if names else -1 for ids in self.item_ids(nodes, filters)]
        return np.asarray(firsts, object if names else np.int64).reshape(nodes.shape[:-1])

    def top(self, beams: Beams, k: int, filters: LiveFilters = None) -> list[list[tuple[ItemId, float]]]:
        """As ``ItemIndex.top``: for each request at most ``k`` pairs (id, score), best first.

        **Ties**: the lower beam, then the base's items by input row before the additions in the order of adding.
        """
        return answers.top(self, beams, k, filters)

    def ids_of_tokens(self, tokens: Any, filters: LiveFilters = None) -> list[list[ItemId]]:
        """As ``ItemIndex.ids_of_tokens``: for each row of tokens [rows, T] the ids of the live items that it spells."""
        return answers.ids_of_tokens(self, tokens, filters)

    def start(self, n_requests: int, width: int) -> Beams:
        """One valid beam a request at the root; ``nodes`` is int64[B, M, 2] in these beams."""
        beams = Beams.start(self.base, n_requests, width)
        nodes = np.full((n_requests, width, 2), NONE, np.int64)
        nodes[:, 0] = self.root
        valid = (nodes >= 0).any(axis=-1)
        return replace(beams, nodes=nodes, valid=valid, scores=np.where(valid, 0.0, -np.inf).astype(np.float32))

    def resume(self, beams: Beams) -> Beams:
        """Beams of another state of the catalogue in this one: nodes found anew, from the sequences.

        A beam whose prefix no live item has any more is not valid; scores, tokens and sequences stay.
        """
        nodes = np.full((*beams.valid.shape, 2), NONE, np.int64)
        nodes[...] = self.root
        for step in range(beams.sequences.shape[2]):
            tokens = beams.sequences[:, :, step]
            following = self.advance(nodes, np.maximum(tokens, 0))
            nodes = np.where((tokens >= 0)[..., None], following, nodes)  # -1: the beam was finished
        valid = beams.valid & (nodes >= 0).any(axis=-1)
        nodes[~valid] = NONE
        return replace(beams, nodes=nodes, valid=valid, scores=np.where(valid, beams.scores, np.float32(-np.inf)))

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
        if self.levels.end_token is None and self.has_prefix_items:
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

    def items(self) -> Iterator[tuple[Rows, Ids]]:
        """All live items, as rows and ids by chunks: the base's in sorted order, then the delta's."""
        for index in (self.base, self.delta):
            for begin in range(0, index.n_items, _CHUNK):
                positions = np.arange(begin, min(begin + _CHUNK, index.n_items))
                if index is self.base:
                    positions = positions[self.live.is_live(positions)]
                if len(positions):
                    codes = index.layout.sequences(index.leaves_at(positions))
                    offsets = np.concatenate([[0], np.cumsum((codes >= 0).sum(axis=1))]).astype(np.int64)
                    ids = select_ids(index.ids, index.rows_at(positions))
                    yield read_rows((codes[codes >= 0], offsets), index.n_levels), ids

    # --- parts ----------------------------------------------------------------------------------------------------

    def _pairs(self, nodes: Int64s) -> Int64s:
        if nodes.dtype != np.int64 or nodes.ndim < 1 or nodes.shape[-1] != 2:
            raise ItemError(f"nodes are {nodes.dtype}{list(nodes.shape)}, not int64[…, 2]")
        return nodes.reshape(-1, 2)

    def _filters(self, filters: LiveFilters, n_requests: int) -> tuple[Filters, Filters]:
        """Filters of both sides, without what was removed."""
        if filters is None or isinstance(filters, (LiveFilter, ItemFilter)):
            return self._over(filters)
        if len(filters) != n_requests:
            raise ItemError(f"{len(filters)} filters for {n_requests} requests")
        both = [self._over(one) for one in filters]
        return [base for base, _ in both], [delta for _, delta in both]

    def _over(self, one: LiveFilter | ItemFilter | None) -> tuple[ItemFilter, ItemFilter | None]:
        """A request's filter over both sides; without one, what was not removed."""
        if one is None:
            return self.live, None
        check_lineage(one, self.lineage)
        assert isinstance(one, LiveFilter)
        return one.over(self.live, self.delta, self.numbers)

    def _prune(self, nodes: Int64s, filters: LiveFilters) -> Int64s:
        """-1 in place of nodes without live items."""
        out = nodes.copy()
        base, delta = self._filters(filters, nodes.shape[0])
        for side, index, given in ((0, self.base, base), (1, self.delta, delta)):
            low, high = index.layout.intervals(np.ascontiguousarray(nodes[..., side]))
            if isinstance(given, AnyFilter):
                out[..., side][~given.any_live(low, high)] = NONE
            else:
                for request, one in enumerate(given or ()):
                    if one is not None:
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


def _small_index(rows: list[tuple[int, ...]], ids: list[ItemId], base: ItemIndex) -> ItemIndex:
    """An index of a few items with the levels of another."""
    levels = base.levels
    kept = read_ids(ids) if ids else select_ids(base.ids, np.zeros(0, np.int64))
    return ItemIndex.build(
        read_rows(rows, base.n_levels),
        kept,
        levels.sizes,
        offsets=levels.offsets,
        logits_size=levels.logits_size,
        end_token=levels.end_token,
        head_depth=0,
        threads=1,
    )


class Catalogue:
    """The current state of a changing catalogue; may be read and changed from several threads.

    Every item has an id of its own, all int, all str or all bytes. ``Catalogue(index)`` takes over an index's items
    and makes the index's map of ids, O(N). ``len`` is the number of live items.
    """

    def __init__(self, base: ItemIndex) -> None:
        if base.item_order is None and base.ids is None:
            raise ItemError('a catalogue needs items with ids: not an index built with item_ids="rank"')
        self._lock, self._merge_lock = threading.RLock(), threading.Lock()
        self._merging: threading.Thread | None = None
        self._journal: list[tuple[Any, list[ItemId], list[ItemId], bool]] = []
        self._take(base)

    def _take(self, base: ItemIndex) -> None:
        """Begin anew with an index and an empty delta."""
        self._added: dict[ItemId, tuple[int, ...]] = {}
        self._numbers: dict[ItemId, int] = {}  # of every id that was ever added to this base
        if not base.id_map.get().is_distinct():
            raise ItemError("several items have the same id")
        delta = _small_index([], [], base)
        removed = np.zeros(base.n_items, np.bool_)
        live, none = ItemFilter.of_rows(base, ~removed), np.zeros(0, np.int64)
        self._state = LiveItems(base, delta, live, removed, none, base.n_items, base.has_prefix_items, object())

    def __len__(self) -> int:
        return self._state.n_items

    def __repr__(self) -> str:
        return repr(self._state).replace("LiveItems", "Catalogue", 1)

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
        self.change(sids, ids)

    def remove(self, ids: Any) -> None:
        """Remove items; raises ItemError, and removes nothing, on an id that is not live."""
        self.change(removed=ids)

    def change(self, sids: Any = None, ids: Any = None, removed: Any = (), *, strict: bool = True) -> None:
        """Remove items, then add items, in one step: no state has half of it. An id may be given in both.

        Raises ItemError, and changes nothing, as :meth:`add` and :meth:`remove` do. Not ``strict``: an id that is added
        and live is replaced, one that is removed and not live is passed over.
        """
        gone, new = read_ids(removed), read_ids(() if ids is None else ids)
        rows = read_rows([] if sids is None else sids)
        if len(new) != len(rows):
            raise ItemError(f"{len(new)} ids for {len(rows)} items")
        gone_ids, new_ids = ids_at(gone, np.arange(len(gone))), ids_at(new, np.arange(len(new)))
        with self._lock:
            added, out = dict(self._added), self._state.removed
            if gone_ids or not strict:
                out = out.copy()
            for item_id, row in zip(gone_ids, self._live_rows(gone).tolist(), strict=True):
                if item_id in added:
                    del added[item_id]
                elif row >= 0 and not out[row]:
                    out[row] = True
                elif strict:
                    raise ItemError(f"no live item has the id {item_id!r}, or it is given twice")
            places = self._live_rows(new)
            listed = [tuple(rows.row(i)) for i in range(len(rows))]
            for item_id, place, row in zip(new_ids, places.tolist(), listed, strict=True):
                if item_id in added or (place >= 0 and not out[place]):
                    if strict:
                        raise ItemError(f"the id {item_id!r} is live already, or given twice")
                    if place >= 0:
                        out[place] = True
                added[item_id] = row
            self._change(added, out, self._numbered(new, new_ids))
            if gone_ids or new_ids:
                self._journal.append((listed, new_ids, gone_ids, strict))

    def _change(
        self, added: dict[ItemId, tuple[int, ...]], removed: npt.NDArray[np.bool_], numbers: dict[ItemId, int]
    ) -> None:
        state = self._state
        if added != self._added:
            delta = _small_index(list(added.values()), list(added), state.base)
            state = replace(
                state,
                delta=delta,
                numbers=np.asarray([numbers[item_id] for item_id in added], np.int64),
                n_numbers=max(state.base.n_items, 1 + max(numbers.values(), default=-1)),
                has_prefix_items=state.base.has_prefix_items or delta.has_prefix_items or _crosses(state.base, delta),
            )
        if not np.array_equal(removed, state.removed):
            state = replace(state, live=ItemFilter.of_rows(state.base, ~removed), removed=removed)
        self._added, self._numbers, self._state = added, numbers, state

    def _numbered(self, new: Ids, new_ids: list[ItemId]) -> dict[ItemId, int]:
        """The ids' numbers, with those of these ids among them."""
        if not new_ids:
            return self._numbers
        numbers, following = dict(self._numbers), self._state.n_numbers
        positions = self._base_positions(new)
        for item_id, position in zip(new_ids, positions.tolist(), strict=True):
            if item_id not in numbers:
                numbers[item_id] = position if position >= 0 else following
                following += position < 0
        return numbers

    def _live_rows(self, ids: Ids) -> Int64s:
        """The base's row of each id, -1 where no live item of the base has it. ItemError on ids of another kind."""
        positions, base = self._base_positions(ids), self._state.base
        if base.n_items:
            rows = base.rows_at(np.maximum(positions, 0))
            return np.where((positions >= 0) & ~self._state.removed[rows], rows, -1)
        return positions

    def _base_positions(self, ids: Ids) -> Int64s:
        """The base's position of each id, live or not, -1 where it has none. ItemError on ids of another kind."""
        found, counts = self._state.base.id_map.get().find(wanted_ids(self._state.base.ids, ids))
        positions = np.full(len(counts), -1, np.int64)
        positions[counts > 0] = found
        return positions

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
                for rows, ids, gone, strict in journal:
                    self.change(rows, ids, gone, strict=strict)
            return merged

    def merge_in_background(self) -> threading.Thread:
        """Start :meth:`merge` in a thread and return it; while one runs, that one."""
        with self._lock:
            if self._merging is None or not self._merging.is_alive():
                self._merging = threading.Thread(target=self.merge, name="wfsa-items-merge", daemon=True)
                self._merging.start()
            return self._merging
