"""Conditions on arrays: the schemas of the first items and of the rest, counts, and whether items differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..spelling.finite import json_key
from .conditions import joined_by_identity, least, no_more
from .handles import ANYTHING, Children, Handle, Values, asks_nothing


class Contains(NamedTuple):
    """From `low` to `high` of the items from index `start` on are in `handle`."""

    handle: Handle
    low: int
    high: int | None
    start: int = 0


class Arrays(NamedTuple):
    """The arrays whose items are in `prefix`, one after the other, and then in `rest`."""

    prefix: tuple[Handle, ...] = ()
    rest: Handle = ANYTHING
    min_items: int = 0
    max_items: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: bool = False
    repeated: bool = False  # some item twice

    def item(self, index: int) -> Handle:
        """Return what is asked of an item, `contains` aside."""
        return self.prefix[index] if index < len(self.prefix) else self.rest

    def meet(self, other: Arrays, children: Children) -> Arrays | None:
        """Return the arrays in both; None if items must all differ and two must be equal."""
        if other is ANY_ARRAYS or self is other:
            return None if self.unique and self.repeated else self
        if self is ANY_ARRAYS:
            return None if other.unique and other.repeated else other
        unique, repeated = self.unique or other.unique, self.repeated or other.repeated
        if unique and repeated:
            return None
        n = max(len(self.prefix), len(other.prefix))
        return Arrays(
            tuple(children.conjoin(self.item(i), other.item(i)) for i in range(n)),
            children.conjoin(self.rest, other.rest), max(self.min_items, other.min_items),
            least(self.max_items, other.max_items), joined_by_identity(self.contains, other.contains), unique, repeated,
        )  # fmt: skip

    def complement(self, children: Children) -> Iterator[Arrays]:
        """Yield the arrays that fail at one condition, for each condition."""
        if self.min_items:
            yield Arrays(max_items=self.min_items - 1)
        if self.max_items is not None:
            yield Arrays(min_items=self.max_items + 1)
        for i, item in enumerate(self.prefix):
            if not asks_nothing(item):
                yield Arrays(prefix=((*(ANYTHING,) * i, children.negate(item))), min_items=i + 1)
        if not asks_nothing(self.rest):
            n = len(self.prefix)
            yield Arrays(contains=(Contains(children.negate(self.rest), 1, None, n),), min_items=n + 1)
        for c in self.contains:
            if c.low:
                yield Arrays(contains=(Contains(c.handle, 0, c.low - 1, c.start),))
            if c.high is not None:
                yield Arrays(contains=(Contains(c.handle, c.high + 1, None, c.start),))
        if self.unique:
            yield Arrays(repeated=True)
        if self.repeated:
            yield Arrays(unique=True)

    def is_empty(self, children: Children, depth: int) -> bool:
        """Whether no array is seen to satisfy the conditions; items are looked at `depth` - 1 levels down."""
        if (self.max_items is not None and self.min_items > self.max_items) or (self.unique and self.repeated):
            return True
        needed = range(min(self.min_items, len(self.prefix) + 1))
        return any(children.nothing(self.item(i), depth - 1) for i in needed)

    def within(self, other: Arrays, children: Children, depth: int) -> bool:
        """Whether the conditions of `other` are seen to follow from these."""
        if other is ANY_ARRAYS or self is other:
            return True
        if self.min_items < other.min_items or not no_more(self.max_items, other.max_items):
            return False
        if other.unique > self.unique or other.repeated > self.repeated:
            return False
        if not all(any(c is d for d in self.contains) for c in other.contains):
            return False
        n = max(len(self.prefix), len(other.prefix))
        return children.narrows(self.rest, other.rest, depth) and all(
            children.narrows(self.item(i), other.item(i), depth) for i in range(n)
        )

    def accepts(self, value: list[Any], children: Values, wide: bool = False, sure: bool = False) -> bool:
        """Whether an array satisfies the conditions."""
        if len(value) < self.min_items or (self.max_items is not None and len(value) > self.max_items):
            return False
        if self.unique or self.repeated:
            if (len({json_key(v) for v in value}) < len(value)) != self.repeated:
                return False
        for c in self.contains:
            counted = value[c.start :]
            if sum(children.admits(c.handle, v, wide, sure) for v in counted) < c.low:
                return False
            if c.high is not None and sum(children.admits(c.handle, v, not wide, not sure) for v in counted) > c.high:
                return False
        asked = value[: len(self.prefix)] if asks_nothing(self.rest) else value
        return all(children.admits(self.item(i), v, wide, sure) for i, v in enumerate(asked))


ANY_ARRAYS = Arrays()
