"""Pools of values that arrays of different items can run out of, where they are too many to be set apart one by one.

Problem.  ``{"items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 102, "uniqueItems": true}`` has no
array.  :mod:`.scarce_items` lists scarce values, up to a limit; here they are counted.

The schemas of the places and the kinds that ``contains`` counts part all values into *pools*: two values are in one
pool if the same of these schemas admit them.  Then it does not matter which values of a pool have been written, only
how many.  A pool is *ample* if it has a value left whenever an array needs one.  That is certain for a pool of at least

    i + 1        values, for a needed place i
    minItems     values, for the places after the prefix; an array is never longer than maxItems
    low + start  values, for a kind of which `low` items are needed from the index `start` on: what has been written of
                 the pool from there on has been counted for the kind, and that is less than `low`

The grammar counts the items of the other pools (:mod:`..write.counted_items`), for which it needs their exact size.  A
pool that is not ample and whose size has a bound, and is not known, is a LimitError: a text could come to where no item
is left for it.  A pool without a known bound, as objects and most arrays are, counts as ample: nearly all of these have
endless values, and refusing them would refuse ordinary lists of maps.
"""

from __future__ import annotations

from collections.abc import Iterator

from wfsa.errors import LimitError

from ...language import ENDLESS
from ..domains.handles import Handle, number_of
from ..domains.shape import Shape
from ..read.alternatives import Alternatives
from .scarce_items import kinds_of
from .value_counts import ValueCounts

MAX_CONDITIONS = 8  # different schemas of places and kinds
MAX_POOLS = 32


class ItemPools:
    """The pools of one shape's arrays; the items of those that are not ample are counted."""

    __slots__ = ("_bits", "_counts", "_numbers", "_parts", "_read", "_shape", "sizes")

    def __init__(self, read: Alternatives, shape: Shape, counts: ValueCounts) -> None:
        self._read = read
        self._shape = shape
        self._counts = counts
        self._bits: dict[int, tuple[int, Handle]] = {}
        for handle in (*shape.arrays.places(), *(kind.handle for kind in shape.arrays.contains)):
            self._bits.setdefault(number_of(handle), (1 << len(self._bits), handle))
        if len(self._bits) > MAX_CONDITIONS:
            raise not_known(shape)
        # Pools by the conditions that they meet, each as a part of one place that takes them.
        self._parts: dict[int, Handle] = {}
        for place in shape.arrays.places():
            for part, met in read.parted(place, self._bits.values(), 1, MAX_POOLS, shape.path):
                self._parts.setdefault(met, part)
        self.sizes: list[int] = []
        self._numbers: dict[int, int] = {}
        for met, part in self._parts.items():
            self._count(met, part)

    def _count(self, met: int, part: Handle) -> None:
        size = self._counts.of(part)
        taking = [i for i, place in enumerate(self._shape.arrays.places()) if met & self._bits[number_of(place)][0]]
        need = max(needed(self._shape, i, self._kinds(met)) for i in taking)
        if size.least >= need or self._counts.is_endless(part):
            return
        if size.least < self._counts.at_least([part], need).most:
            if size.most >= ENDLESS:
                return
            raise not_known(self._shape)
        self._numbers[met] = len(self.sizes)
        self.sizes.append(size.least)

    def _kinds(self, met: int, index: int | None = None) -> int:
        """The kinds that an item counts for (bits) at an index, or at any index."""
        kinds = enumerate(self._shape.arrays.contains)
        there = ((k, kind.handle) for k, kind in kinds if index is None or index >= kind.start)
        return sum(1 << k for k, handle in there if met & self._bits[number_of(handle)][0])

    def items_at(self, index: int) -> Iterator[tuple[int, Handle, int | None]]:
        """(kinds that an item counts for, the item, the number of its pool or None if the pool is ample)."""
        place = self._bits[number_of(self._shape.arrays.item(index))][0]
        for met, part in self._parts.items():
            if met & place:
                yield self._kinds(met, index), part, self._numbers.get(met)


def needed(shape: Shape, index: int, kinds: int) -> int:
    """How many values are certainly enough for the items at an index that count for `kinds` (bits)."""
    n = len(shape.arrays.prefix)
    wanted = [kind for kind in shape.arrays.contains if kind.low]
    length = max((shape.arrays.min_items, *(max(kind.start, n) for kind in wanted)))
    if index < n:
        return index + 1 if index < length else 0
    need = length if length > n else 0
    of_kinds = (kind.low + kind.start for k, kind in enumerate(shape.arrays.contains) if kinds >> k & 1 and kind.low)
    need = max((need, *of_kinds))
    return need if shape.arrays.max_items is None else min(need, shape.arrays.max_items)


def short_parts(read: Alternatives, shape: Shape, counts: ValueCounts) -> list[Handle]:
    """The parts of places that have perhaps no value left when an array needs one."""
    found = []
    last = max((len(shape.arrays.prefix), *(kind.start for kind in shape.arrays.contains)))
    for i, place in enumerate(shape.arrays.places()):
        index = i if i < len(shape.arrays.prefix) else last
        for part, kinds in kinds_of(read, shape, place, index):
            need = needed(shape, index, kinds)
            if need > 1 and (size := counts.of(part)).least < need and not counts.is_endless(part):
                if size.most < ENDLESS or counts.at_least([part], need).most == size.least:
                    found.append(part)
    return found


def lacking(read: Alternatives, shape: Shape, counts: ValueCounts) -> str | None:
    """Why there are too few values for any array of different items, as far as their number tells; else None."""
    all_places = shape.arrays.places()
    low = shape.arrays.min_items
    if low > 1 and (some := counts.at_least(all_places, low)).most < low:
        return f"an array needs {low} different items and there are {some.most}"
    for kind in shape.arrays.contains:
        if kind.low > 1:
            some = counts.at_least([read.conjoin(place, kind.handle) for place in all_places], kind.low)
            if some.most < kind.low:
                return f"contains needs {kind.low} different items and there are {some.most}"
    return None


def not_known(shape: Shape) -> LimitError:
    """The error where it is not decided whether each array has a value left for the items that it needs."""
    return LimitError(
        "uniqueItems: the values of items that an array needs can run short, and they are too many or too varied to be "
        "counted; lower minItems or minContains, let the items have more values, or take "
        f"SchemaOptions(unique_items='unchecked') at {shape.path}"
    )
