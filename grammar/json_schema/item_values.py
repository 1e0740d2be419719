"""How many different values the items of an array can have, for ``uniqueItems`` and its complement.

Few values are remembered by the grammar itself (:mod:`.counted_items`); where there are more, the runtime compares the
items as they are written, and has to know whether it can run out of values.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Any

from wfsa.grammar.json_schema.alternatives import Alternatives
from wfsa.grammar.json_schema.finite import json_key
from wfsa.grammar.json_schema.productions import Distinct
from wfsa.grammar.json_schema.scalars import FEW
from wfsa.grammar.json_schema.shape import ARRAY, BOOLEAN, INTEGER, NULL, NUMBER, OBJECT, STRING, Handle, Shape, item_of

MAX_DISTINCT = 10  # values of the items of an array that must not repeat, remembered by the grammar
MANY = 1 << 20  # items that no array has


def listed_values(read: Alternatives, shape: Shape) -> list[Any] | None:
    """All values that an item of an array can have, if they are listed."""
    found: dict[Any, Any] = {}
    n = len(shape.prefix) + (shape.max_items is None or shape.max_items > len(shape.prefix))
    for i in range(n):
        some = _listed(read, item_of(shape, i))
        if some is None:
            return None
        found.update(some)
    return list(found.values())


def _listed(read: Alternatives, handle: Handle, ranges: bool = False) -> dict[Any, Any] | None:
    """The values that fit, by what makes them equal, if they are listed; or, with `ranges`, few whole numbers."""
    found: dict[Any, Any] = {}
    for s in read.of_handle(handle):
        if s.values is None:
            numbers = _whole_numbers(read, s) if ranges else []
            if numbers is None or s.mask & ~(NULL | BOOLEAN | (INTEGER if ranges else 0)):
                return None
            some = [None] * bool(s.mask & NULL) + [False, True] * bool(s.mask & BOOLEAN) + numbers
        else:
            some = [v for v in s.values if read.accepts(v, s)]
        found.update((json_key(v), v) for v in some)
    return found


def _whole_numbers(read: Alternatives, shape: Shape) -> list[Any] | None:
    """Those that a shape admits; None if there may be many."""
    if not shape.mask & INTEGER:
        return []
    if shape.low is None or shape.high is None or shape.high - shape.low > MAX_DISTINCT:
        return None
    return [n for n in range(ceil(shape.low), floor(shape.high) + 1) if read.accepts(n, shape)]


def longest(read: Alternatives, shape: Shape) -> int | None:
    """How many items an array without equal ones can have, as far as positions whose values are listed tell.

    The first length at which no different values can be given to those positions, by augmenting paths (Kuhn 1955).
    """
    rest = _listed(read, shape.rest, ranges=True)
    wanted = [_listed(read, handle, ranges=True) for handle in shape.prefix]
    wanted += [] if rest is None or len(rest) > MAX_DISTINCT else [rest] * (len(rest) + 1)
    holder: dict[Any, int] = {}

    def place(position: int, seen: set[Any]) -> bool:
        for value in wanted[position] or ():
            if value not in seen:
                seen.add(value)
                if value not in holder or place(holder[value], seen):
                    holder[value] = position
                    return True
        return False

    for position, values in enumerate(wanted):
        if values is not None and len(values) <= MAX_DISTINCT and not place(position, set()):
            return position
    return None


def distinct(read: Alternatives, shape: Shape) -> Distinct:
    """Must the items of a shape differ, and has one of them no end of values to have?"""
    if not shape.unique:
        return "no"
    for i in range(len(shape.prefix) + 1):
        if not _is_endless(read, item_of(shape, i)):
            return "exhaustible"
    return "endless"


def _is_endless(read: Alternatives, handle: Handle, depth: int = 3) -> bool:
    """Whether so many values certainly fit that no document can have them all."""
    for s in read.described(handle) if depth else ():
        if s.values is not None:
            continue
        if s.mask & STRING and (s.max_length is None or s.max_length > FEW) and not (s.patterns or s.formats):
            return True
        if s.mask & NUMBER and (s.low is None or s.high is None or s.high - s.low > MANY):
            return True
        if s.mask & OBJECT and s.max_properties != 0 and any(
            _is_endless(read, child, depth - 1) for child in (*s.properties.values(), s.additional)
        ):
            return True
        if s.mask & ARRAY and s.max_items != 0 and _is_endless(read, item_of(s, 0), depth - 1):
            return True
    return False
