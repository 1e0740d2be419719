"""The step over items in torch, on any device: no host reads, no shapes that depend on values.

    items = TorchItems(index, "cuda")                     # copies the arrays once
    beams = items.start(n_requests=2, width=70)
    for level in range(index.n_levels):
        beams = step(beams, logits, level=level)          # step = torch.compile(items.beam_step, fullgraph=True)

**Hubs.** Padding each beam to the level's widest node makes every beam pay for a hub. Here the entries of a request's
beams lie one after the other in one *work list*; place p of it belongs to the beam found by a search in the running sum
of widths. Its length is a number known beforehand: the M beams of a request are different nodes, so together they
have at most the entries of the level's M widest nodes (``DeviceLayout.capacity``). It is exact, never a guess: nothing
is cut off. Callers that give the same node twice in a request must say ``distinct=False`` (M times the widest node);
a request that breaks the promise and does not fit comes back with all beams missing rather than with a wrong answer.

**Order.** A candidate is one int64: score, made monotone as an integer, above beam and token, inverted. Keys differ, so
``topk`` gives the stated tie rule on every device.

Cost, by request: ``capacity`` gathers and one ``topk`` over as many int64s; ``full`` reads all logits once more.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wfsa.installing import needs

with needs("wfsa.items.backends.torch", extra="items"):
    import torch

from wfsa.errors import ItemError
from wfsa.items.backends.device_layout import (
    ArrayOps,
    DeviceFilters,
    DeviceLayout,
    NodeFields,
    Tensor,
    device_layout,
)
from wfsa.items.backends.device_union import DeviceUnion, UnionFilters
from wfsa.items.beams import Beams, Normalise, check_normalise
from wfsa.items.filter import Filters, stack_filters
from wfsa.items.index import ItemIndex
from wfsa.items.index_data import IndexData
from wfsa.items.live import LiveItems
from wfsa.items.live_filter import LiveFilters
from wfsa.items.nodes import NONE

NO_KEY: Final = -(1 << 63)
LOGITS: Final = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def torch_ops(device: Any) -> ArrayOps:
    """The index arithmetic's operations, on a torch device."""

    def gather(array: Tensor, at: Tensor) -> Tensor:
        return array[at.clamp(0, array.shape[0] - 1)].to(torch.int64)

    return ArrayOps(
        upload=lambda array: torch.tensor(array, device=device),
        where=torch.where,
        zeros_like=torch.zeros_like,
        gather=gather,
        take_along=lambda array, at: torch.take_along_dim(array, at, -1),
        count_less=lambda array, values: torch.searchsorted(array, values.contiguous()),
        stack=lambda arrays: torch.stack(arrays, -1),
    )


def _spread(filters: DeviceFilters | None, shape: tuple[int, ...]) -> Tensor | None:
    """The filter of each node, for nodes whose first axis is the request; the same for all where there is one."""
    if filters is None:
        return None
    return filters.which.reshape(-1, *[1] * (len(shape) - 1)).expand(shape) if shape else filters.which[0]


def _mapped(which: Any, change: Any) -> Any:
    """What is made of the numbers of filters, or of those of both sides."""
    if isinstance(which, tuple):
        return tuple(_mapped(one, change) for one in which)
    return None if which is None else change(which)


def _of_request(which: Any) -> Any:
    """From filters of [B, M] nodes those of [B, 1] requests."""
    return _mapped(which, lambda one: one[:, :1])


class TorchItems:
    """An ItemIndex on a device, or one state of a changing catalogue (LiveItems), whose nodes are int64[…, 2].

    Nodes are the index's own ids, int64; tokens int32 or int64; logits any float type.

    Back ends on a device do not read values on the host, so a node that is none of this index, or NaN logits, raise
    nothing: a beam with NaN or +inf among the logits that are read has no candidates.
    """

    def __init__(self, index: ItemIndex | LiveItems, device: Any = None) -> None:
        self.index: Any = index
        self.device = torch.device("cpu" if device is None else device)
        ops = torch_ops(self.device)
        self.layout: Any = None
        self.everything: UnionFilters | None = None  # what there is of a catalogue
        if isinstance(index, LiveItems):
            self.layout = DeviceUnion(
                device_layout(index.base.layout, ops), device_layout(index.delta.layout, ops), ops
            )
            base, added = (self._put(part, live, 1) for part, live in zip(index.parts, index.present, strict=True))
            self.everything = UnionFilters(base, added, index)
        else:
            self.layout = device_layout(index.layout, ops)
        levels = index.levels
        self.n_levels, self.logits_size, self.end_token = len(levels), levels.logits_size, levels.end_token
        self.offsets, self.sizes = levels.offsets, levels.sizes
        self.uniform = len(set(zip(levels.offsets, levels.sizes, strict=True))) == 1
        self.bit_values = torch.tensor(
            np.asarray([1 << bit for bit in range(32)], np.uint32).view(np.int32), device=self.device
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.index!r} on {self.device})"

    # --- arguments ------------------------------------------------------------------------------------------------

    def start(self, n_requests: int, width: int) -> Beams:
        """As ``Beams.start``, on the device."""
        first = Beams.start(self.index, n_requests, width)
        names = ("nodes", "scores", "valid", "parents", "tokens", "sequences")
        return Beams(*(torch.tensor(getattr(first, name), device=self.device) for name in names))

    def filters(self, filters: Filters | LiveFilters, n_requests: int) -> Any:
        """Copy one filter for all requests, or one (or None) a request, to the device; equal objects once.

        Returns what the steps take: DeviceFilters, of a catalogue UnionFilters; None for no filters.
        """
        if isinstance(self.index, ItemIndex):
            return self._put(self.index, filters, n_requests)
        given = self.index.part_filters(filters, n_requests)
        if given is None:
            return None
        sides = zip(self.index.parts, zip(*given, strict=True), strict=True)
        base, added = (self._put(part, list(some), n_requests) for part, some in sides)
        return UnionFilters(base, added, self.index)

    def _put(self, part: IndexData, filters: Any, n_requests: int) -> DeviceFilters | None:
        """Filters of an index on the device."""
        stacked = stack_filters(filters, n_requests, part.fingerprint, part.n_leaves)
        if stacked is None:
            return None
        which, words, before, rows, dead = (
            None if array is None else torch.tensor(array, device=self.device) for array in stacked
        )
        return DeviceFilters(which, words, before, rows, dead, part.fingerprint)

    def _nodes(self, nodes: Tensor) -> None:
        if nodes.dtype != torch.int64 or nodes.device.type != self.device.type:
            raise ItemError(f"nodes are {nodes.dtype} on {nodes.device}, not int64 on {self.device}")
        if self.everything is not None and tuple(nodes.shape[-1:]) != (2,):
            raise ItemError(f"nodes are int64{list(nodes.shape)}, not int64[…, 2]")

    def _logits(self, logits: Tensor, shape: tuple[int, ...]) -> None:
        if tuple(logits.shape) != (*shape, self.logits_size) or logits.dtype not in LOGITS:
            want = [*shape, self.logits_size]
            raise ItemError(f"logits are {logits.dtype}{list(logits.shape)}, not floats {want}")
        if logits.device.type != self.device.type:
            raise ItemError(f"logits are on {logits.device}, the index on {self.device}")

    def _check_step(self, beams: Beams, logits: Tensor, width: int | None) -> tuple[int, int, int]:
        """Requests, beams and next width; raises ItemError on what a step cannot take."""
        self._nodes(beams.nodes)
        rows = self._rows(beams.nodes)
        if len(rows) != 2:
            raise ItemError(f"beams have nodes of shape {list(rows)}, not [B, M]")
        if self.index.has_prefix_items and self.end_token is None:
            raise ItemError("an item is a prefix of another: beam_step needs an index built with an end_token")
        n_requests, n_beams = rows
        self._logits(logits, (n_requests, n_beams))
        width = n_beams if width is None else width
        if width < 1:
            raise ItemError(f"{width} beams")
        if n_beams * (self.logits_size + 1) >= 1 << 31:
            raise ItemError(f"{n_beams} beams of {self.logits_size} logits: a request may have 2^31 at most")
        return n_requests, n_beams, width

    def _rows(self, nodes: Tensor) -> tuple[int, ...]:
        """The shape of nodes, without the axis of a pair."""
        return tuple(nodes.shape if self.everything is None else nodes.shape[:-1])

    def _which(self, filters: DeviceFilters | None, shape: tuple[int, ...]) -> Tensor | None:
        """The filter of each node, for nodes whose first axis is the request."""
        if filters is None:
            return None
        filters.check(self.index.fingerprint, shape[0] if shape else 1)
        return _spread(filters, shape)

    def _live(self, filters: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Filters and, for each node, which it has; of a catalogue for both sides."""
        if self.everything is None:
            return filters, self._which(filters, shape)
        if filters is None:
            filters = self.everything
        else:
            filters.check(self.index, shape[0] if shape else 1)
        return filters, tuple(_spread(one, shape) for one in (filters.base, filters.added))

    # --- the pieces -----------------------------------------------------------------------------------------------

    def _work_list(
        self, nodes: Tensor, level: int | None, distinct: bool, filters: Any, which: Any
    ) -> tuple[Any, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Of nodes [B, M]: their fields, and for each place [B, C] beam, entry, token, presence; overflow bool[B].

        All beams of a request have one filter. The places of a union are those of the base, then those of what was
        added, of which one that the base has is not present.
        """
        layout, n_beams = self.layout, nodes.shape[1]
        f, of_request = layout.fields(nodes), _of_request(which)
        if self.everything is None:
            return f, *self._places(layout, f, layout.capacity(level, n_beams, distinct), filters, of_request)
        sides = [
            self._places(side, g, side.capacity(level, n_beams, distinct), live, number)
            for side, g, live, number in (
                (layout.base, f.base, filters.base, of_request[0]),
                (layout.added, f.added, filters.added, of_request[1]),
            )
        ]
        (*base, base_over), (beam, entry, token, present, over) = sides
        present = present & ~layout.base_has(f, beam, token, filters, of_request)
        joined = (torch.cat([one, more], 1) for one, more in zip(base, (beam, entry, token, present), strict=True))
        return f, *joined, base_over | over

    def _places(
        self, layout: DeviceLayout, f: NodeFields, capacity: int, filters: DeviceFilters | None, which: Any
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """For each place [B, C] of nodes [B, M] of one layout beam, entry, token, presence; overflow bool[B]."""
        ends = f.width.cumsum(1)
        n_requests, n_beams = ends.shape
        place = torch.arange(capacity, device=ends.device).expand(n_requests, capacity).contiguous()
        beam = torch.searchsorted(ends, place, right=True).clamp(max=n_beams - 1)
        inside = place < ends[:, -1:]
        entry = torch.where(inside, place - torch.take_along_dim(ends - f.width, beam, 1), 0)
        code, live = layout.live_entry(f, beam, entry, filters, which)
        token = code + torch.take_along_dim(layout.begin[f.level], beam, 1)
        return beam, entry, token, inside & live, ends[:, -1] > capacity

    def _flat(self, nodes: Tensor, filters: Any) -> tuple[Tensor, Any, Any]:
        """Nodes of any shape as [n, 1], filters, and which each node has."""
        rows = self._rows(nodes)
        filters, which = self._live(filters, rows)
        return nodes.reshape(-1, 1, *nodes.shape[len(rows) :]), filters, _mapped(which, lambda one: one.reshape(-1, 1))

    def _present(self, nodes: Tensor, filters: Any, level: int | None, size: int) -> Tensor:
        """bool[n, size], True at allowed tokens; ``size`` is at least the logits'."""
        flat, filters, of_node = self._flat(nodes, filters)
        f, _, _, token, present, _ = self._work_list(flat, level, False, filters, of_node)
        out = torch.zeros((flat.shape[0], size + 1), dtype=torch.bool, device=nodes.device)
        out = out.scatter(1, torch.where(present, token, size), present)
        if self.end_token is not None:
            out[:, self.end_token] = self.layout.closing(f, filters, of_node)[:, 0]
        return out[:, :size]

    def allowed(self, nodes: Tensor, filters: Any = None, *, level: int | None = None) -> Tensor:
        """Packed masks int32[*nodes.shape, ceil(logits_size / 32)]. ``level``: all nodes have it (None: any)."""
        self._nodes(nodes)
        n_words = self.index.levels.n_words
        bits = self._present(nodes, filters, level, n_words * 32).reshape(-1, n_words, 32)
        words = torch.where(bits, self.bit_values, 0).sum(-1, dtype=torch.int32)
        return words.reshape(*self._rows(nodes), n_words)

    def mask_logits(self, logits: Tensor, nodes: Tensor, filters: Any = None, *, level: int | None = None) -> Tensor:
        """``logits[*nodes.shape, V]`` with -inf at what is not allowed."""
        self._nodes(nodes)
        self._logits(logits, self._rows(nodes))
        present = self._present(nodes, filters, level, self.logits_size)
        return logits.masked_fill(~present.reshape(logits.shape), float("-inf"))

    def children(self, nodes: Tensor, filters: Any = None, *, level: int | None = None) -> tuple[Tensor, Tensor]:
        """Of nodes of any shape: tokens int32[..., K] and child nodes int64[..., K], -1 where there is none.

        K is the level's widest node, and one where there is an end token; the end token comes first.
        """
        self._nodes(nodes)
        flat, filters, of_node = self._flat(nodes, filters)
        f, beam, entry, token, present, _ = self._work_list(flat, level, False, filters, of_node)
        child = self.layout.follow(f, beam, entry, token, filters, of_node)
        child = torch.where(self._wide(present), child, NONE)
        token = torch.where(present, token, -1)
        if self.everything is not None:  # the entries of a union come by side
            token, order = torch.where(token < 0, self.logits_size, token).sort(1)
            token = torch.where(token == self.logits_size, -1, token)
            child = torch.take_along_dim(child, order[..., None], 1)
        if self.end_token is not None:
            end = self.layout.closing(f, filters, of_node)
            closed = self.layout.close(f, torch.zeros_like(end, dtype=torch.int64), filters, of_node)
            token = torch.cat([torch.where(end, self.end_token, -1), token], 1)
            child = torch.cat([torch.where(self._wide(end), closed, NONE), child], 1)
        shape = (*self._rows(nodes), token.shape[1])
        return token.to(torch.int32).reshape(shape), child.reshape(*shape, *child.shape[2:])

    def _wide(self, flags: Tensor) -> Tensor:
        """Flags of nodes, which broadcast to the nodes."""
        return flags if self.everything is None else flags[..., None]

    def advance(self, nodes: Tensor, tokens: Tensor, filters: Any = None) -> Tensor:
        """The nodes after one token each; -1 where the token is not allowed."""
        self._nodes(nodes)
        rows = self._rows(nodes)
        if tuple(tokens.shape) != rows or tokens.is_floating_point():
            raise ItemError(f"tokens are {tokens.dtype}{list(tokens.shape)}, not integers {list(rows)}")
        filters, which = self._live(filters, rows)
        return self.layout.advance(nodes, tokens.to(torch.int64), filters, which)

    def finished(self, nodes: Tensor) -> Tensor:
        """Where an item is complete and nothing can follow; bool of nodes' shape."""
        self._nodes(nodes)
        return self.layout.finished(self.layout.fields(nodes))

    # --- the step -------------------------------------------------------------------------------------------------

    def beam_step(
        self,
        beams: Beams,
        logits: Tensor,
        *,
        width: int | None = None,
        normalise: Normalise = "full",
        filters: Any = None,
        level: int | None = None,
        distinct: bool = True,
    ) -> Beams:
        """One step as defined in ``wfsa.items.beams``, exact.

        level     the level of every unfinished beam, where the caller knows it: shorter work lists. None: any
        distinct  no request has a node twice, as ``start`` and ``beam_step`` make them
        """
        check_normalise(normalise)
        n_requests, n_beams, width = self._check_step(beams, logits, width)
        nodes = torch.where(self._wide(beams.valid), beams.nodes, NONE)
        filters, which = self._live(filters, (n_requests, n_beams))
        f, beam, entry, token, present, overflow = self._work_list(nodes, level, distinct, filters, which)
        capacity = entry.shape[1]

        values = self._values(logits, beam, token, present)
        end = self.layout.closing(f, filters, which)
        finished = self.layout.stays(f, filters, which)
        norm, good = self._norm(logits, f, beam, values, end, normalise, level)

        # The places of the work list, then one more a beam: its end token, or itself where it is finished.
        shift = beams.scores - norm
        scores = torch.take_along_dim(shift, beam, 1) + values
        present = present & torch.take_along_dim(good, beam, 1)
        if self.end_token is not None:
            closing = shift + logits[:, :, self.end_token].to(torch.float32)
            extra = torch.where(end, closing, beams.scores)
        else:
            extra = beams.scores
        extra_token = torch.where(end, -1 if self.end_token is None else self.end_token, -1)
        numbers = torch.arange(n_beams, device=nodes.device).expand(n_requests, n_beams)
        keys = torch.cat(
            [
                self._keys(scores, beam, token, present),
                self._keys(extra, numbers, extra_token, (end & good) | finished),
            ],
            1,
        )
        if keys.shape[1] < width:
            keys = torch.nn.functional.pad(keys, (0, width - keys.shape[1]), value=NO_KEY)
        best, at = torch.topk(keys, width, dim=1, sorted=True)

        valid = (best != NO_KEY) & ~overflow[:, None]
        parent, token = self._unpack(best)
        parent, token = torch.where(valid, parent, 0), torch.where(valid, token, -1)
        is_extra = at >= capacity
        chosen = torch.zeros_like(at)
        if capacity:
            chosen = torch.take_along_dim(entry, at.clamp(max=capacity - 1), 1)
        of_request = _of_request(which)
        child = self.layout.follow(f, parent, torch.where(is_extra, 0, chosen), token, filters, of_request)
        stay = torch.take_along_dim(nodes, self._wide(parent), 1)
        if self.end_token is not None:
            closed = self.layout.close(f, parent, filters, of_request)
            stay = torch.where(self._wide(token >= 0), closed, stay)
        child = torch.where(self._wide(is_extra), stay, child)
        before = torch.take_along_dim(beams.sequences, parent[:, :, None], 1) if beams.sequences.shape[2] else None
        steps = token[:, :, None].to(torch.int32)
        if before is not None:
            steps = torch.cat([torch.where(valid[:, :, None], before, -1), steps], 2)
        return Beams(
            torch.where(self._wide(valid), child, NONE),
            torch.where(valid, self._score(best), float("-inf")),
            valid,
            parent.to(torch.int32),
            token.to(torch.int32),
            steps,
        )

    def _values(self, logits: Tensor, beam: Tensor, token: Tensor, present: Tensor) -> Tensor:
        """The logit of each place, float32; -inf where nothing is present."""
        flat = logits.reshape(logits.shape[0], -1)
        at = torch.where(present, beam * self.logits_size + token, 0)
        read = torch.take_along_dim(flat, at, 1).to(torch.float32) if flat.shape[1] else at.to(torch.float32)
        return torch.where(present, read, float("-inf"))

    def _norm(
        self, logits: Tensor, f: Any, beam: Tensor, values: Tensor, end: Tensor, normalise: str, level: int | None
    ) -> tuple[Tensor, Tensor]:
        """float32[B, M], and whether the beam may have candidates."""
        if normalise in ("full", "level"):
            norm = self._dense_norm(logits, f, normalise, level)
            good = (norm > float("-inf")) & (norm < float("inf"))  # False for NaN
            return torch.where(good, norm, 0.0), good
        shape = tuple(f.width.shape)
        end_value = torch.full(shape, float("-inf"), device=logits.device)
        if self.end_token is not None:
            end_value = torch.where(end, logits[:, :, self.end_token].to(torch.float32), end_value)
        # NaN would be lost in amax on some devices: it counts as +inf.
        safe = torch.where(values.isnan(), float("inf"), values)
        end_value = torch.where(end_value.isnan(), float("inf"), end_value)
        top = end_value.scatter_reduce(1, beam, safe, "amax", include_self=True)
        good = top < float("inf")
        if normalise == "none":
            return torch.zeros_like(top), good
        good = good & (top > float("-inf"))
        top = torch.where(good, top, 0.0)
        # Sums in float64, so that the order in which a device adds does not show in float32.
        above = torch.where(values > float("-inf"), values - torch.take_along_dim(top, beam, 1), float("-inf"))
        shifted = torch.exp(above.double())
        total = torch.exp((end_value - top).double()).scatter_add(1, beam, shifted)
        norm = (top.double() + torch.log(total)).float()
        return torch.where(good, norm, 0.0), good

    def _dense_norm(self, logits: Tensor, f: Any, normalise: str, level: int | None) -> Tensor:
        if normalise == "full":
            return torch.logsumexp(logits.to(torch.float32), -1)
        if level is None and self.uniform and self.end_token is None:
            level = 0  # all levels read the same logits; a finished beam's norm is not used
        if level is not None:
            begin, size = (self.offsets[level], self.sizes[level]) if level < self.n_levels else (0, 0)
            part = logits[:, :, begin : begin + size].to(torch.float32)
            norm = torch.logsumexp(part, -1) if size else torch.full(part.shape[:2], float("-inf"), device=part.device)
        else:
            token = torch.arange(self.logits_size, device=logits.device)
            begin = self.layout.begin[f.level][:, :, None]
            inside = (token >= begin) & (token < begin + self.layout.sizes[f.level][:, :, None])
            norm = torch.logsumexp(logits.to(torch.float32).masked_fill(~inside, float("-inf")), -1)
        if self.end_token is None:
            return norm
        return torch.logaddexp(norm, logits[:, :, self.end_token].to(torch.float32))

    def _keys(self, scores: Tensor, beam: Tensor, token: Tensor, present: Tensor) -> Tensor:
        scores = torch.where(scores == 0, 0.0, scores)  # -0.0 is 0.0
        bits = scores.contiguous().view(torch.int32)
        ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(torch.int64)
        rank = beam * (self.logits_size + 1) + token + 1
        return torch.where(present & (scores > float("-inf")), (ordered << 32) | (0x7FFFFFFF - rank), NO_KEY)

    def _unpack(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Beam and token of keys."""
        rank = 0x7FFFFFFF - (keys & 0x7FFFFFFF)
        return rank // (self.logits_size + 1), rank % (self.logits_size + 1) - 1

    def _score(self, keys: Tensor) -> Tensor:
        ordered = (keys >> 32).to(torch.int32)
        return torch.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered).view(torch.float32)
