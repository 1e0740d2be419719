"""All values that a schema has, where they are few: those listed by ``enum``, and those that its other keywords leave.

Told for every type: whole numbers and multiples in a range, strings of a finite language, arrays and objects of such
values.  The domains make candidates from their own bounds, and `Alternatives.accepts` decides on each of them; where
the candidates become many, or nothing bounds them, the answer is "not few".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..domains.arrays import Arrays
from ..domains.handles import Handle
from ..domains.shape import Domain, Shape
from ..domains.types import BOOLEAN, NULL
from ..read.alternatives import Alternatives
from ..spelling.finite import json_key

Values = dict[Any, Any]  # by what makes them equal (finite.json_key)
CANDIDATES = 64  # values and words that are looked at for one shape
DEPTH = 3  # arrays and objects in each other
MAX_FEW = 32  # values of the items of an array that are listed to see whether there are enough of them


class FewValues:
    """Lists the values of handles; `most`: how many are few."""

    __slots__ = ("_most", "_read")

    def __init__(self, read: Alternatives, most: int) -> None:
        self._read = read
        self._most = most

    def of(self, handle: Handle, depth: int = DEPTH) -> Values | None:
        """All values, or None if they are not few."""
        found: Values = {}
        for shape in self._read.described(handle):
            some: list[Any]
            if shape.values is not None:
                some = [v for v in shape.values if self._read.accepts(v, shape)]
            else:
                some = shape.constants()
                for kind, domain in shape.parts():
                    also = self.of_domain(shape, kind, domain, depth)
                    if also is None:
                        return None
                    some += also
            found.update((json_key(v), v) for v in some)
            if len(found) > self._most:
                return None
        return found

    def of_domain(
        self, s: Shape, kind: int, domain: Domain, depth: int = DEPTH, most: int = CANDIDATES
    ) -> list[Any] | None:
        """The values that one type has in a shape, or None if they are not few; some may be equal."""

        def few(child: Handle) -> Collection[Any] | None:
            if isinstance(child, tuple) and isinstance(child[0], bool):
                return None if child[0] else ()
            found = self.of(child, depth - 1) if depth else None
            return None if found is None else found.values()

        candidates = None if s.loose else domain.values(s.mask & kind, most, few, self._read)
        return None if candidates is None else [v for v in candidates if self._read.accepts(v, s)]


def listed_values(read: Alternatives, arrays: Arrays) -> list[Any] | None:
    """All values that the items can have, if there is no need to make any: constants, booleans and null."""
    found: Values = {}
    for handle in arrays.places():
        for s in read.of_handle(handle):
            if s.values is None and s.mask & ~(NULL | BOOLEAN):
                return None
            some = s.constants() if s.values is None else [v for v in s.values if read.accepts(v, s)]
            found.update((json_key(v), v) for v in some)
    return list(found.values())


def longest(read: Alternatives, arrays: Arrays) -> int | None:
    """How many items an array without equal ones can have, as far as positions with few values tell.

    The first length at which no different values can be given to those positions, by augmenting paths (Kuhn 1955).
    """
    few = FewValues(read, MAX_FEW)
    rest = few.of(arrays.rest)
    wanted = [few.of(handle) for handle in arrays.prefix]
    wanted += [] if rest is None else [rest] * (len(rest) + 1)
    holder: dict[Any, int] = {}

    for position, values in enumerate(wanted):
        if values is not None and not _place(position, wanted, holder, set()):
            return position
    return None


def _place(position: int, wanted: Sequence[Collection[Any] | None], holder: dict[Any, int], seen: set[Any]) -> bool:
    """Give a position one of the values it wants, moving other positions to other values where that helps."""
    for value in wanted[position] or ():
        if value not in seen:
            seen.add(value)
            if value not in holder or _place(holder[value], wanted, holder, seen):
                holder[value] = position
                return True
    return False
