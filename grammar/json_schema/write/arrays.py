"""The rules of a shape's arrays: a prefix, a rest, a count; :mod:`.counted_items` where items have to be remembered."""

from __future__ import annotations

from ..counting.item_pools import ItemPools, lacking, not_known, short_parts
from ..counting.item_values import MAX_DISTINCT, distinct, listed_values, longest
from ..counting.scarce_items import MAX_KINDS, ScarceItems
from ..counting.value_counts import ValueCounts
from ..domains.handles import Handle
from ..domains.shape import Shape
from ..widening import CAUGHT
from .counted_items import CountedItems
from .memo import Memo, Place


class Arrays:
    """Makes the rules of arrays."""

    __slots__ = ("_memo",)

    def __init__(self, memo: Memo) -> None:
        self._memo = memo

    def symbol(self, shape: Shape, place: Place) -> int | None:
        """The symbol of a shape's arrays; None if there are none."""
        memo, path = self._memo, shape.path
        most = shape.arrays.max_items
        if shape.arrays.repeated and most is not None and most < 2:
            memo.empty(f"an array needs two equal items and can have {most}", path)
            return None
        unique = shape.arrays.unique and (most is None or most > 1)
        counts = bool(shape.arrays.contains or shape.arrays.repeated)
        is_listed = unique or (counts and (shape.arrays.unique or shape.arrays.repeated))
        values = listed_values(memo.read, shape) if is_listed else None
        few = values if values is not None and len(values) <= MAX_DISTINCT else None
        high = longest(memo.read, shape) if unique else None
        if high is not None and high < shape.arrays.min_items:
            memo.empty(f"an array needs {shape.arrays.min_items} different items and can have {high}", path)
            return None
        if most is not None:
            high = most if high is None else min(high, most)
        if unique and few is None and len(shape.arrays.contains) <= MAX_KINDS:
            counted = ValueCounts(memo.read)
            why = lacking(memo.read, shape, counted)
            if why is not None:
                memo.empty(why, path)
                return None
            short = short_parts(memo.read, shape, counted)
            try:
                scarce = self._scarce(shape, short, counted)
                if scarce.sizes:
                    return CountedItems(memo, place, shape, few, high, scarce).symbol()
            except CAUGHT:
                if short:
                    raise not_known(shape) from None
        if counts or few is not None:
            return CountedItems(memo, place, shape, few, high).symbol()
        low = shape.arrays.min_items
        prefix: list[int] = []
        for i, handle in enumerate(shape.arrays.prefix):
            if high is not None and i >= high:
                break
            value = memo.child(handle)
            if value is None:
                high = i
                break
            prefix.append(value)
        rest: int | None = None
        if high is None or high > len(prefix):
            rest = memo.child(shape.arrays.rest)
            if rest is None:
                high = len(prefix)
        if high is not None and low > high:
            memo.empty(f"an array needs {low} items and can have {high}", path)
            return None
        if values is not None and len(values) < low:
            memo.empty(f"an array needs {low} different items and there are {len(values)}", path)
            return None
        while prefix and prefix[-1] == rest:
            prefix.pop()
        must_differ = distinct(memo.read, shape) if unique else "no"
        return memo.out.array(tuple(prefix), rest, low, high, path, place.in_advance(), must_differ)

    def _scarce(self, shape: Shape, short: list[Handle], counted: ValueCounts) -> ScarceItems | ItemPools:
        """The values that items can run out of: listed if those of the `short` parts are few, else in pools."""
        read = self._memo.read
        listed = ScarceItems(read, shape)
        if all(listed.others(part) is None for part in short):
            return listed
        return ItemPools(read, shape, counted)
