"""What is seen of two shapes without making their intersection a part of the grammar: no value, none in common, inside.

    is_empty    a shape has no value            `nothing`   a child has none
    overlap     two may have one in common
    within      all values of one are in another            `narrows`   the same of two children

"Seen" is one-sided: True is certain, False is not (of `overlap`: the other way round).  Conditions are compared by
themselves, children by what they name or, down to a depth, by their own alternatives.  A product of unions stays small
only where this sees enough: an alternative that excludes another costs nothing, and so does one that implies it.

A child may be in the middle of being read: then nothing is seen of it, and what follows from that is not remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wfsa.errors import LimitError

from .domains.conditions import no_more
from .domains.types import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from .finite import json_key
from .shape import BeingRead, Compound, Handle, Keyed, Shape, item_of, number_of, property_of

if TYPE_CHECKING:
    from .alternatives import Alternatives

DEPTH = 3  # levels down to which two alternatives are looked at to see that they exclude each other
MAX_PAIRS = 256  # alternatives of two children that are compared


class Comparisons:
    """Compares the shapes and the children of one document."""

    __slots__ = ("_empty", "_excluding", "_narrower", "_read")

    def __init__(self, read: Alternatives) -> None:
        self._read = read
        # (id of a child, levels looked at) -> (it, is it seen to be empty); not what met a schema that was being read
        self._empty: dict[tuple[int, int], tuple[Handle, bool]] = {}
        # ids of two children -> (they, are they seen to exclude each other)
        self._excluding: dict[tuple[int, int], tuple[Handle, Handle, bool]] = {}
        # (ids of two children, levels looked at) -> (they, is the first seen to have no value that the second lacks)
        self._narrower: dict[tuple[int, int, int], tuple[Handle, Handle, bool]] = {}

    # ---- no value ----------------------------------------------------------------------------------------------------

    def overlap(self, a: Shape, b: Shape, depth: int = DEPTH) -> bool:
        """Whether two shapes may have a value in common."""
        if a is b:
            return not self.is_empty(a, depth)
        if a.values is None and b.values is None and a.mask & b.mask & (NULL | BOOLEAN):
            return True
        if depth > 0 and self.apart(a, b):
            return False
        both = self._read.intersection(a, b)
        return both is not None and not self.is_empty(both, depth)

    def apart(self, a: Shape, b: Shape) -> bool:
        """Whether two sets of objects are seen to exclude each other by a property that both name and one requires."""
        if a.mask & b.mask != OBJECT:
            return False
        mine, theirs = a.properties, b.properties
        return any(
            name in mine and name in theirs and self._exclude(mine[name], theirs[name])
            for name in (*a.required, *b.required)
        )

    def _exclude(self, a: Handle, b: Handle) -> bool:
        """Whether two children are seen to have no value in common."""
        x, y = number_of(a), number_of(b)
        known = self._excluding.get((x, y))
        if known is not None:
            return known[2]
        before = self._read.unknown
        left, right = self._read.looked_at(a), self._read.looked_at(b)
        out = False
        if left is not None and right is not None and x != y and len(left) * len(right) <= MAX_PAIRS:
            out = not any(self.overlap(s, t, 0) for s in left for t in right)
        if out or self._read.unknown == before:
            self._excluding[x, y] = self._excluding[y, x] = a, b, out
        return out

    def is_empty(self, s: Shape, depth: int) -> bool:
        """Whether a shape is seen to have no value; children are looked at `depth` levels down."""
        if s.values is not None:
            return not any(self._might_accept(v, s, depth) for v in s.values)
        mask = s.mask
        if mask & (NULL | BOOLEAN):
            return False
        if mask & NUMBER and s.numbers.is_empty():
            mask &= ~NUMBER
        if mask & STRING and s.strings.is_empty():
            mask &= ~STRING
        if mask & ARRAY and ((s.max_items is not None and s.min_items > s.max_items) or (s.unique and s.repeated)):
            mask &= ~ARRAY
        if mask & ARRAY:
            if any(self.nothing(item_of(s, i), depth - 1) for i in range(min(s.min_items, len(s.prefix) + 1))):
                mask &= ~ARRAY
        if mask & OBJECT:
            most = s.max_properties
            if most is not None and max(s.min_properties, len(s.required)) > most:
                mask &= ~OBJECT
            if any(self.nothing(self.member_of(s, name), depth - 1) for name in s.required):
                mask &= ~OBJECT
            if any(not self.possible(s, wanted, depth) for wanted in s.existentials):
                mask &= ~OBJECT
        return not mask

    def possible(self, s: Shape, wanted: tuple[Keyed, ...], depth: int) -> tuple[Keyed, ...]:
        """Those of some classes of which an object can have a property with the value that is asked for there."""

        def fits(name: str, child: Handle) -> bool:
            return not self.nothing(self._read.conjoin(self.member_of(s, name), child), depth - 1)

        return tuple(x for x in wanted if x[0].only is None or fits(x[0].only, x[1]))

    def member_of(self, s: Shape, name: str) -> Handle:
        """What a shape asks of a property, by its name and by the patterns that the name matches."""
        out = property_of(s, name)
        for keys, child in s.universals:
            if keys.key is None and self._read.members.in_class(name, keys):
                out = self._read.conjoin(out, child)
        return out

    def _might_accept(self, value: Any, shape: Shape, depth: int) -> bool:
        if isinstance(value, (list, dict)) and not depth:
            return True
        try:
            return self._read.members.accepts(value, shape, wide=True)
        except BeingRead:
            self._read.unknown += 1
            return True

    def nothing(self, handle: Handle, depth: int) -> bool:
        """Whether a child is seen to have no value."""
        if isinstance(handle, tuple) and isinstance(handle[0], bool):
            return not handle[0]
        if depth < 0:
            return False
        key = number_of(handle), depth
        known = self._empty.get(key)
        if known is not None:
            return known[1]
        before = self._read.unknown
        shapes = self._read.looked_at(handle)
        out = shapes is not None and all(self.is_empty(s, depth) for s in shapes)
        if out or self._read.unknown == before:
            self._empty[key] = handle, out
        return out

    def parted(
        self, handle: Handle, asked: Iterable[tuple[int, Handle]], depth: int, most: int, path: str
    ) -> list[tuple[Handle, int]]:
        """A child, parted by what its values meet of (bits, what is asked); LimitError for over `most` parts."""
        parts: list[tuple[Handle, int]] = [(handle, 0)]
        for bits, condition in asked:
            split = [
                (self._read.conjoin(value, part), met | more)
                for value, met in parts
                for part, more in ((self._read.negate(condition), 0), (condition, bits))
            ]
            parts = [(value, met) for value, met in split if not self.nothing(value, depth)]
            if len(parts) > most:
                raise LimitError(f"more than {most} kinds of values of one property at {path}")
        return parts

    # ---- inside ------------------------------------------------------------------------------------------------------

    def within(self, a: Shape, b: Shape, depth: int = 1) -> bool:
        """Whether `a` is seen to have no value outside `b`; children are looked at `depth` levels down."""
        if b.free:
            return bool(b.seen is a.seen)
        if a.mask & ~b.mask or b.seen is not a.seen or b.loose > a.loose or self.apart(a, b):
            return False
        if a.values is not None:
            return not b.loose and self._has_all(b, a.values, depth)
        if b.values is not None:
            return False
        mask = a.mask
        return (
            (not mask & NUMBER or a.numbers.within(b.numbers))
            and (not mask & STRING or a.strings.within(b.strings))
            and (not mask & ARRAY or self._arrays_within(a, b, depth))
            and (not mask & OBJECT or self._objects_within(a, b, depth))
        )

    def _has_all(self, shape: Shape, values: Sequence[Any], depth: int) -> bool:
        if shape.values is not None and not {*map(json_key, values)} <= {*map(json_key, shape.values)}:
            return False
        if not depth and any(isinstance(v, (list, dict)) for v in values):
            return False
        try:
            return all(self._read.members.accepts(v, shape, sure=True) for v in values)
        except BeingRead:
            self._read.unknown += 1
            return False

    def _arrays_within(self, a: Shape, b: Shape, depth: int) -> bool:
        if a.min_items < b.min_items or not no_more(a.max_items, b.max_items):
            return False
        if b.unique > a.unique or b.repeated > a.repeated:
            return False
        if not all(any(c is d for d in a.contains) for c in b.contains):
            return False
        n = max(len(a.prefix), len(b.prefix))
        return self.narrows(a.rest, b.rest, depth) and all(
            self.narrows(item_of(a, i), item_of(b, i), depth) for i in range(n)
        )

    def _objects_within(self, a: Shape, b: Shape, depth: int) -> bool:
        if a.min_properties < b.min_properties or not no_more(a.max_properties, b.max_properties):
            return False
        if not {*b.required} <= {*a.required}:
            return False
        if not all(any(x is y for x in a.universals) for y in b.universals):
            return False
        if not all(self.has_some(a, wanted, depth) for wanted in b.existentials):
            return False
        return (
            self.narrows(a.additional, b.additional, depth)
            and all(self.narrows(property_of(a, name), child, depth) for name, child in b.properties.items())
            and all(
                name in b.properties or self.narrows(child, b.additional, depth) for name, child in a.properties.items()
            )
        )

    def has_some(self, s: Shape, wanted: tuple[Keyed, ...], depth: int) -> bool:
        """Whether an object of a shape certainly has a property that is wanted."""
        if any(set(map(id, mine)) <= set(map(id, wanted)) for mine in s.existentials):
            return True
        return any(
            keys.only in s.required and self.narrows(property_of(s, keys.only), child, depth)
            for keys, child in wanted
            if keys.only is not None
        )

    def narrows(self, a: Handle, b: Handle, depth: int) -> bool:
        """Whether a child is seen to have no value that another one lacks."""
        if _names_less(a, b):
            return True
        if depth <= 0:
            return False
        key = number_of(a), number_of(b), depth
        known = self._narrower.get(key)
        if known is not None:
            return known[2]
        before = self._read.unknown
        out = self._alternatives_within(a, b, depth - 1)
        if out or self._read.unknown == before:
            self._narrower[key] = a, b, out
        return out

    def _alternatives_within(self, a: Handle, b: Handle, depth: int) -> bool:
        left, right = self._read.looked_at(a), self._read.looked_at(b)
        if left is None or right is None or len(left) * len(right) > MAX_PAIRS:
            return False
        return all(any(self.within(s, t, depth) for t in right) or self.is_empty(s, depth) for s in left)


def _names_less(a: Handle, b: Handle) -> bool:
    """The same by the schemas that two children name, which are not read."""
    if a is b:
        return True
    if isinstance(b, tuple):
        if b[0] is True or (isinstance(a, tuple) and (a[0] is b[0] or a[0] is False)):
            return True
    elif isinstance(a, tuple) and a[0] is False:
        return True
    if isinstance(a, Compound) and a.kind == "and":
        asked = b.parts if isinstance(b, Compound) and b.kind == "and" else (b,)
        return all(any(_same(x, y) for x in a.parts) for y in asked)
    return isinstance(b, Compound) and b.kind == "or" and any(_same(a, x) for x in b.parts)


def _same(a: Handle, b: Handle) -> bool:
    return a is b or (isinstance(a, tuple) and isinstance(b, tuple) and a[0] is b[0])
