"""Arrays that count kinds of items, or whose items must not repeat.

The rules go along states, made by :meth:`.Productions.array_with_state`:

    (items so far, up to the last bound; items of each kind so far, up to its bound; values used, a bit each)

`used` is -1 once a value has repeated, where that is wanted; where the values are not few, -2 after the first item that
does, which the runtime compares.  Where the values are few they are the items' kinds; elsewhere an item's kinds are
those `contains` that it meets, and its schema is cut into one for each set of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wfsa.errors import LimitError
from wfsa.grammar.json_schema.item_values import MAX_DISTINCT, distinct
from wfsa.grammar.json_schema.memo import Memo, in_advance
from wfsa.grammar.json_schema.shape import Handle, Shape, item_of
from wfsa.grammar.json_schema.widening import Unenforceable

MAX_KINDS = 8  # of items that are counted

State = tuple[int, tuple[int, ...], int]


class CountedItems:
    """Makes the rules of one shape's arrays; `values` are those of the items, if they are few and may not repeat."""

    __slots__ = ("_kinds", "_memo", "_most", "_shape", "_symbols", "_values")

    def __init__(self, memo: Memo, shape: Shape, values: list[Any] | None) -> None:
        self._memo = memo
        self._shape = shape
        self._kinds = shape.contains
        self._values = values
        high = shape.max_items
        starts = (kind.start for kind in shape.contains)
        self._most = high if high is not None else max(shape.min_items, len(shape.prefix), *starts, 1)
        self._symbols: dict[int, list[tuple[int, int, int | None]]] = {}

    def symbol(self) -> int | None:
        memo, shape = self._memo, self._shape
        if len(self._kinds) > MAX_KINDS:
            raise LimitError(f"more than {MAX_KINDS} kinds of items are counted at {shape.path}")
        # Values that are not few are compared as they are written.
        must_differ = distinct(memo.read, shape) if self._values is None else "no"
        by_text = self._values is None and shape.repeated
        # What has no bound can go on until an item repeats, whatever has been written.
        bounded = shape.contains or shape.max_items is not None or memo.child(shape.rest) is None
        if by_text and bounded:
            raise Unenforceable(
                f"the complement of uniqueItems cannot be enforced over more than {MAX_DISTINCT} different items "
                f"beside maxItems or contains; give the items an enum, or take "
                f"SchemaOptions(unique_items='unchecked') at {shape.path}"
            )
        memo.may_be_empty = True
        return memo.out.array_with_state(
            (0, (0,) * len(self._kinds), 0), self._choices, self._is_end, shape.path,
            lambda: in_advance(shape.array_symbol), must_differ, lambda state: by_text and state[2] == -2,
        )  # fmt: skip

    def _choices(self, state: State) -> Iterator[tuple[int, State]]:
        """(symbol of an item, the state after it)"""
        n, counts, used = state
        high = self._shape.max_items
        if high is not None and n >= high:
            return
        for met, symbol, number in self._items_at(n):
            after = self._counts_after(counts, met)
            now = self._used_after(used, number)
            if after is not None and now is not None:
                yield symbol, (min(n + 1, self._most), after, now)
                if self._shape.repeated and number is None and n and not used:
                    yield symbol, (min(n + 1, self._most), after, -2)

    def _is_end(self, state: State) -> bool:
        n, counts, used = state
        enough = all(kind.low <= k for kind, k in zip(self._kinds, counts, strict=True))
        return n >= self._shape.min_items and enough and not (self._shape.repeated and used >= 0)

    def _counts_after(self, counts: tuple[int, ...], met: int) -> tuple[int, ...] | None:
        """The counts after an item of the kinds in the bits of `met`; None if there are too many of one."""
        out = []
        for k, (n, kind) in enumerate(zip(counts, self._kinds, strict=True)):
            n += met >> k & 1
            if kind.high is not None and n > kind.high:
                return None
            out.append(n if kind.high is not None else min(n, kind.low))
        return tuple(out)

    def _used_after(self, used: int, number: int | None) -> int | None:
        """The values used after one more; None if it may not be."""
        if number is None:
            return -1 if used else 0
        is_new = used >= 0 and not used >> number & 1
        if self._shape.unique:
            return used | 1 << number if is_new else None
        return used | 1 << number if is_new else -1

    def _items_at(self, index: int) -> list[tuple[int, int, int | None]]:
        """(kinds that an item counts for, its symbol, its number among the values) at an index."""
        if index not in self._symbols:
            found = self._symbols[index] = []
            kinds = self._by_kinds(index) if self._values is None else self._by_values(index, self._values)
            for met, handle, number in kinds:
                symbol = self._memo.child(handle)
                if symbol is not None:
                    found.append((met, symbol, number))
        return self._symbols[index]

    def _by_values(self, index: int, values: list[Any]) -> Iterator[tuple[int, Handle, int]]:
        read = self._memo.read
        there = [(k, kind.handle) for k, kind in enumerate(self._kinds) if index >= kind.start]
        for number, value in enumerate(values):
            if not read.members.admits(item_of(self._shape, index), value):
                continue
            met, may = (sum(read.members.admits(h, value, wide) << k for k, h in there) for wide in (False, True))
            if met == may:
                yield met, ({"enum": [value]}, self._shape.path), number

    def _by_kinds(self, index: int) -> Iterator[tuple[int, Handle, None]]:
        kinds = ((1 << k, kind.handle) for k, kind in enumerate(self._kinds) if index >= kind.start)
        item = item_of(self._shape, index)
        for handle, met in self._memo.read.compared.parted(item, kinds, 1, 1 << MAX_KINDS, self._shape.path):
            yield met, handle, None
