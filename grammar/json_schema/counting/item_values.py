"""How many different values the items of an array can have, for ``uniqueItems`` and its complement.

Few values are remembered by the grammar itself (:mod:`..write.counted_items`); where there are more, the runtime
compares the items as they are written, and has to know whether it can run out of values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any, Literal

from ..domains.handles import Handle
from ..domains.shape import Shape
from ..domains.types import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from ..read.alternatives import Alternatives
from ..spelling.finite import json_key
from .few_values import FewValues
from .scalar_counts import common_step, has_no_fraction, steps_of

Distinct = Literal["no", "endless", "exhaustible"]  # must items differ, and out of how many values

MAX_DISTINCT = 10  # values of the items of an array that must not repeat, remembered by the grammar
MAX_FEW = 32  # values that are listed to see whether there are enough of them
FEW = 2  # at least so many characters of a string are cheaper spelled out than counted
MANY = 1 << 20  # items that no array has
DEPTH = 3  # schemas in each other that are read to see whether their values are endless


def listed_values(read: Alternatives, shape: Shape) -> list[Any] | None:
    """All values that an item of an array can have, if they are listed."""
    found: dict[Any, Any] = {}
    n = len(shape.arrays.prefix) + (shape.arrays.max_items is None or shape.arrays.max_items > len(shape.arrays.prefix))
    for i in range(n):
        some = _listed(read, shape.arrays.item(i))
        if some is None:
            return None
        found.update(some)
    return list(found.values())


def _listed(read: Alternatives, handle: Handle) -> dict[Any, Any] | None:
    """The values that fit, by what makes them equal, if they are listed."""
    found: dict[Any, Any] = {}
    for s in read.of_handle(handle):
        if s.values is not None:
            some = [v for v in s.values if read.accepts(v, s)]
        elif s.mask & ~(NULL | BOOLEAN):
            return None
        else:
            some = [None] * bool(s.mask & NULL) + [False, True] * bool(s.mask & BOOLEAN)
        found.update((json_key(v), v) for v in some)
    return found


def longest(read: Alternatives, shape: Shape) -> int | None:
    """How many items an array without equal ones can have, as far as positions with few values tell.

    The first length at which no different values can be given to those positions, by augmenting paths (Kuhn 1955).
    """
    few = FewValues(read, MAX_FEW)
    rest = few.of(shape.arrays.rest)
    wanted = [few.of(handle) for handle in shape.arrays.prefix]
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


def distinct(read: Alternatives, shape: Shape) -> Distinct:
    """Must the items of a shape differ, and has one of them no end of values to have?"""
    if not shape.arrays.unique:
        return "no"
    for i in range(len(shape.arrays.prefix) + 1):
        if not is_endless(read, shape.arrays.item(i)):
            return "exhaustible"
    return "endless"


def is_endless(read: Alternatives, handle: Handle, within: tuple[int, ...] = ()) -> bool:
    """Whether so many values certainly fit that no document can have them all.

    Values that can be part of a longer one of their own kind are endless, if there is one to begin with.
    """
    key = id(handle[0] if isinstance(handle, tuple) else handle)
    if key in within:
        return _has_simple(read, handle)
    if len(within) == DEPTH:
        return False
    within = *within, key
    return any(s.values is None and not s.loose and _shape_is_endless(read, s, within) for s in read.described(handle))


def _shape_is_endless(read: Alternatives, s: Shape, within: tuple[int, ...]) -> bool:
    if s.mask & STRING and (s.strings.max_length is None or s.strings.max_length > max(FEW, s.strings.min_length)):
        if s.strings.has_any_text():
            return True
    if s.mask & NUMBER and not s.numbers.not_multiples and not has_no_fraction(s):
        step = common_step([*steps_of(s), Fraction(1)])
        low, high = s.numbers.low, s.numbers.high
        if low is None or high is None or Fraction(high) - Fraction(low) > MANY * step:
            return True
    if s.mask & OBJECT and _has_endless_objects(read, s, within):
        return True
    if s.mask & ARRAY and not s.arrays.repeated and not any(c.low or c.high is not None for c in s.arrays.contains):
        n = max(s.arrays.min_items, 1)  # all of one length will do, items that differ among them
        if s.arrays.max_items is None or s.arrays.max_items >= n:
            return all(is_endless(read, s.arrays.item(i), within) for i in range(min(n, len(s.arrays.prefix) + 1)))
    return False


def _has_endless_objects(read: Alternatives, s: Shape, within: tuple[int, ...]) -> bool:
    """Whether one member of an object has values without end, beside the least that the others need."""
    if s.objects.existentials or any(keys.key is not None for keys, _ in s.objects.universals):
        return False
    needed = [s.objects.all_of_member(name, read) for name in s.objects.required]
    if not all(_has_simple(read, child) or is_endless(read, child, within) for child in needed):
        return False
    most = s.objects.max_properties
    for name in s.objects.properties:
        n = len(s.objects.required) + (name not in s.objects.required)
        if n >= s.objects.min_properties and (most is None or n <= most):
            if is_endless(read, s.objects.all_of_member(name, read), within):
                return True
    # A member of some other name, of which there are without end.
    n = len(s.objects.required) + 1
    if s.objects.universals or n < s.objects.min_properties or (most is not None and n > most):
        return False
    return is_endless(read, s.objects.additional, within)


def _has_simple(read: Alternatives, handle: Handle) -> bool:
    """Whether a scalar certainly fits, or an array or object without content."""
    return any(_has_simple_value(read, s) for s in read.described(handle) if not s.loose)


def _has_simple_value(read: Alternatives, s: Shape) -> bool:
    if s.values is not None:
        return any(read.accepts(v, s) for v in s.values)
    if s.mask & (NULL | BOOLEAN):
        return True
    if s.mask & STRING and s.strings.has_any_text() and not s.strings.excluded:
        if s.strings.max_length is None or s.strings.max_length >= s.strings.min_length:
            return True
    if s.mask & NUMBER and not (s.numbers.multiples or s.numbers.not_multiples or s.numbers.excluded):
        if s.numbers.low is None or s.numbers.high is None or s.numbers.high - s.numbers.low > 1:
            return True
    arrays = s.arrays
    if s.mask & ARRAY and not arrays.min_items and not arrays.repeated and not any(c.low for c in arrays.contains):
        return True
    return bool(s.mask & OBJECT) and not (s.objects.required or s.objects.min_properties or s.objects.existentials)
