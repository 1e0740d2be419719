"""Values that an array of different items can lack when it needs them, and how the grammar counts them.

Problem.  In ``{"prefixItems": [{}, {"type": "null"}], "minItems": 2, "uniqueItems": true}`` a null in the first place
leaves the second one without a value, and no bracket may close the array before.  So values that a later place needs
have to be saved for it.

A place is *scarce* if an array may need an item there, and its values are few enough that the items before can take all
of them: at index j, at most j values.  A kind of items that ``contains`` counts is scarce wherever its values are few.
The values of scarce places and kinds are set apart from all others, and grouped: two values are in one group if they
fit the same places and are of the same kinds there.  Which values of a group have been written then changes nothing for
the others, only how many of them have (a few values are groups of one); the grammar counts that
(:mod:`..write.counted_items`), and states from which no array can be completed are dropped with the rules that derive
nothing.
Values of one group are compared as they are written.

Where the values of scarce places are more than `MAX_SCARCE`, :mod:`.item_pools` counts them without listing them.

A place that is not scarce has a value left whenever it is reached, and one that is not needed can be left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..domains.handles import Handle
from ..domains.shape import Shape
from ..read.alternatives import Alternatives
from .few_values import FewValues, Values

MAX_SCARCE = 64  # values that are set apart
MAX_KINDS = 8  # of items that are counted
MAX_APART = 4  # values that are told apart in the state, so that it is known which of them are left

Parts = list[tuple[Handle, int]]  # of the items of a place, with the kinds that each counts for (bits)


class ScarceItems:
    """The values of one shape's arrays that are set apart."""

    __slots__ = ("_few", "_read", "_shape", "groups", "sizes", "values")

    def __init__(self, read: Alternatives, shape: Shape) -> None:
        self._read = read
        self._shape = shape
        self._few = FewValues(read, MAX_SCARCE)
        self.values: Values = {}
        for some in self._scarce():
            self.values.update(some)
        if len(self.values) > MAX_SCARCE:
            self.values = {}
        self.groups: list[list[Any]] = self._grouped()
        self.sizes = [len(group) for group in self.groups]

    def _scarce(self) -> Iterator[Values]:
        s = self._shape
        for index in range(len(s.arrays.prefix) + 1):
            handle = s.arrays.item(index)
            if s.arrays.contains:
                for part, _ in kinds_of(self._read, s, handle, index):
                    some = self._few.of(part)
                    if some:
                        yield some
            elif index < s.arrays.min_items:
                last = index if index < len(s.arrays.prefix) else s.arrays.min_items - 1
                some = self._few.of(handle)
                if some is not None and len(some) <= last:
                    yield some

    def kinds_at(self, index: int, value: Any) -> int | None:
        """The kinds that a value counts for at an index (bits); None if it does not fit, or that is in doubt."""
        admits = self._read.admits
        if not admits(self._shape.arrays.item(index), value):
            return None
        there = [(k, kind.handle) for k, kind in enumerate(self._shape.arrays.contains) if index >= kind.start]
        met, may = (sum(admits(h, value, wide) << k for k, h in there) for wide in (False, True))
        return met if met == may else None

    def _grouped(self) -> list[list[Any]]:
        starts = [kind.start for kind in self._shape.arrays.contains]
        indexes = range(max([len(self._shape.arrays.prefix), *starts]) + 1)
        if len(self.values) <= MAX_APART:
            return [[value] for value in self.values.values()]
        groups: dict[tuple[int | None, ...], list[Any]] = {}
        for value in self.values.values():
            groups.setdefault(tuple(self.kinds_at(index, value) for index in indexes), []).append(value)
        return list(groups.values())

    def items_at(self, index: int) -> Iterator[tuple[int, Handle, int | None]]:
        """(kinds that an item counts for, the item, the number of its group or None for values not set apart)."""
        for number, group in enumerate(self.groups):
            met = self.kinds_at(index, group[0])
            if met is not None:
                yield met, ({"enum": group}, self._shape.path), number
        for handle, met in kinds_of(self._read, self._shape, self._shape.arrays.item(index), index):
            rest = self.others(handle)
            if rest is not None:
                yield met, rest, None

    def others(self, handle: Handle) -> Handle | None:
        """The values of a part of a place that are not set apart; None if there are none."""
        if not self.values:
            return handle
        some = self._few.of(handle)
        if some is not None and some.keys() <= self.values.keys():
            return None
        there = [value for value in self.values.values() if self._read.admits(handle, value)]
        if not there:
            return handle
        return self._read.conjoin(handle, self._read.negate(({"enum": there}, self._shape.path)))


def kinds_of(read: Alternatives, shape: Shape, handle: Handle, index: int) -> Parts:
    """The items of a place, parted by the kinds that they count for."""
    kinds = ((1 << k, kind.handle) for k, kind in enumerate(shape.arrays.contains) if index >= kind.start)
    return read.parted(handle, kinds, 1, 1 << MAX_KINDS, shape.path)
