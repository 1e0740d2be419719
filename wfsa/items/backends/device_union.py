"""A state of a changing catalogue on a device: the union of a base and of what was added since, as one trie.

Nodes are pairs int64[…, 2], as on the host. The entries of a node are those of its base and those of the added side. An
entry of the added side counts only where the base has no live child with the same code, so that each code comes once.
Where an entry leads is looked up by its code on either side.

``DeviceUnion`` has the methods of a ``DeviceLayout`` that a step calls. Filters and the numbers ``which`` are pairs,
one a side; None: all of the side is live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wfsa.errors import ItemError
from wfsa.items.backends.device_layout import ArrayOps, DeviceFilters, DeviceLayout, NodeFields, Tensor
from wfsa.items.nodes import NONE

Pair = tuple[Any, Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnionFilters:
    """Filters of the base and of the added side for some requests, and the state of the catalogue that they are of."""

    base: DeviceFilters | None
    added: DeviceFilters | None
    state: object

    def check(self, state: object, n_requests: int) -> None:
        """Raise ItemError where they are of another state of the catalogue, or for other requests."""
        if self.state is not state:
            raise ItemError("filters of another state of the catalogue: make them by this one's `filters`")
        for one in (self.base, self.added):
            if one is not None and one.which.shape[0] != n_requests:
                raise ItemError(f"filters for {one.which.shape[0]} requests, nodes of {n_requests}")


@dataclass(frozen=True, slots=True, eq=False)
class UnionFields:
    """The fields of either side."""

    base: NodeFields
    added: NodeFields
    level: Tensor

    @property
    def width(self) -> Tensor:
        return self.base.width + self.added.width


class DeviceUnion:
    """See the module."""

    def __init__(self, base: DeviceLayout, added: DeviceLayout, ops: ArrayOps) -> None:
        self.base, self.added, self.ops = base, added, ops
        self.begin, self.sizes, self.end_token = base.begin, base.sizes, base.end_token

    def fields(self, nodes: Tensor) -> UnionFields:
        base, added = self.base.fields(nodes[..., 0]), self.added.fields(nodes[..., 1])
        return UnionFields(base, added, self.ops.where(base.there, base.level, added.level))

    def take(self, f: UnionFields, at: Tensor) -> UnionFields:
        """Of the nodes with numbers ``at`` along the last axis."""
        taken = self.base.take(f.base, at), self.added.take(f.added, at)
        return UnionFields(*taken, self.ops.take_along(f.level, at))

    def base_has(self, f: UnionFields, at: Tensor, token: Tensor, filters: UnionFilters, which: Pair) -> Tensor:
        """Whether the base has a live child with a token, of each of the nodes with numbers ``at``."""
        g = self.base.take(f.base, at)
        return self.base.live_child(g, token - self.begin[g.level], filters.base, which[0]) >= 0

    def follow(
        self, f: UnionFields, at: Tensor, entry: Tensor, token: Tensor, filters: UnionFilters, which: Pair
    ) -> Tensor:
        """The children with these tokens of the nodes with numbers ``at``."""
        return self._children(self.take(f, at), token, filters, which)

    def _children(self, f: UnionFields, token: Tensor, filters: UnionFilters, which: Pair) -> Tensor:
        code = token - self.begin[f.level]
        base = self.base.live_child(f.base, code, filters.base, which[0])
        return self.ops.stack([base, self.added.live_child(f.added, code, filters.added, which[1])])

    def close(self, f: UnionFields, at: Tensor, filters: UnionFilters, which: Pair) -> Tensor:
        """Where the end token leads from the nodes with numbers ``at``."""
        return self._closed(self.take(f, at), filters, which)

    def _closed(self, f: UnionFields, filters: UnionFilters, which: Pair) -> Tensor:
        base, added = self._closing(f, filters, which)
        where = self.ops.where
        return self.ops.stack(
            [where(base, self.base.closed(f.base.low), NONE), where(added, self.added.closed(f.added.low), NONE)]
        )

    def _closing(self, f: UnionFields, filters: UnionFilters, which: Pair) -> Pair:
        base = self.base.closing(f.base, filters.base, which[0])
        return base, self.added.closing(f.added, filters.added, which[1])

    def closing(self, f: UnionFields, filters: UnionFilters, which: Pair) -> Tensor:
        """Where the end token may come."""
        base, added = self._closing(f, filters, which)
        return base | added

    def finished(self, f: UnionFields) -> Tensor:
        """Where an item is complete and nothing can follow."""
        if self.end_token is not None:
            return f.base.ended | f.added.ended
        return (f.base.there | f.added.there) & (f.width == 0)

    def stays(self, f: UnionFields, filters: UnionFilters, which: Pair) -> Tensor:
        """Where a live item is complete and nothing can follow."""
        base = self.base.if_live(f.base.there, filters.base, which[0], f.base.low, f.base.high)
        added = self.added.if_live(f.added.there, filters.added, which[1], f.added.low, f.added.high)
        return self.finished(f) & (base | added)

    def advance(self, nodes: Tensor, tokens: Tensor, filters: UnionFilters, which: Pair) -> Tensor:
        """The nodes after one token (int64) each; NONE on both sides where it is not allowed."""
        f = self.fields(nodes)
        child = self._children(f, tokens, filters, which)
        if self.end_token is not None:
            end = (tokens == self.end_token)[..., None]
            child = self.ops.where(end, self._closed(f, filters, which), child)
        return child
