"""All values that a schema has, where they are few: those listed by ``enum``, and those that its other keywords leave.

Told for every type: whole numbers and multiples in a range, strings of a finite language, arrays and objects of such
values.  The candidates are made from a shape's own bounds, one part after the other, and `Alternatives.accepts` decides
on each of them; where the candidates become many, or nothing bounds them, the answer is "not few".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from wfsa.errors import LimitError

from ...language import words
from ..domains.handles import Handle, asks_nothing
from ..domains.shape import Shape
from ..domains.types import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from ..read.alternatives import Alternatives
from ..spelling.finite import json_key
from .name_classes import listed_names, name_classes, value_of
from .scalar_counts import listed_numbers

Values = dict[Any, Any]  # by what makes them equal (finite.json_key)
CANDIDATES = 64  # values and words that are looked at for one shape
DEPTH = 3  # arrays and objects in each other


class FewValues:
    """Lists the values of handles; `most`: how many are few."""

    def __init__(self, read: Alternatives, most: int) -> None:
        self._read = read
        self._most = most

    def of(self, handle: Handle, depth: int = DEPTH) -> Values | None:
        """All values, or None if they are not few."""
        found: Values = {}
        for shape in self._read.described(handle):
            some = self.of_shape(shape, depth)
            if some is None:
                return None
            found.update((json_key(v), v) for v in some)
            if len(found) > self._most:
                return None
        return found

    def of_shape(self, s: Shape, depth: int = DEPTH) -> list[Any] | None:
        """The values of one shape, or None if they are not few; some may be equal."""
        if s.values is not None:
            return [v for v in s.values if self._read.accepts(v, s)]
        if s.loose:
            return None
        found: list[Any] = [None] * bool(s.mask & NULL) + [False, True] * bool(s.mask & BOOLEAN)
        parts: list[tuple[int, Callable[[Shape, int], Iterable[Any] | None]]] = [
            (NUMBER, _numbers), (STRING, _strings), (ARRAY, self._arrays), (OBJECT, self._objects),
        ]  # fmt: skip
        for kind, candidates in parts:
            if not s.mask & kind:
                continue
            some = candidates(s, depth)
            if some is None:
                return None
            found += [v for v in some if self._read.accepts(v, s)]
        return found

    def _arrays(self, s: Shape, depth: int) -> list[Any] | None:
        found: list[list[Any]] = [[]]
        longest = found
        for i in range(CANDIDATES):
            if not longest or i == s.arrays.max_items:
                return found
            values = self._part(s.arrays.item(i), depth)
            if values is None or len(longest) * len(values) > CANDIDATES:
                return None
            longest = [[*items, v] for items in longest for v in values.values()]
            if s.arrays.unique:
                longest = [items for items in longest if len({json_key(v) for v in items}) == len(items)]
            found += longest
        return None

    def _objects(self, s: Shape, depth: int) -> list[Any] | None:
        members = self._members(s, depth) if s.objects.max_properties != 0 else {}
        if members is None:
            return None
        found: list[dict[str, Any]] = [{}]
        for name, values in members.items():
            if len(found) * (1 + len(values)) > CANDIDATES:
                return None
            found += [{**others, name: v} for others in found for v in values.values()]
        return found

    def _members(self, s: Shape, depth: int) -> dict[str, Values] | None:
        """The names of all members that there can be, with their values."""
        is_full = s.objects.max_properties is not None and s.objects.max_properties <= len(s.objects.required)
        if not is_full and not (s.objects.universals or s.objects.existentials) and asks_nothing(s.objects.additional):
            return None  # the usual case: any name
        found: dict[str, Values] = {}
        for name in s.objects.required if is_full else listed_names(s):
            values = self._part(value_of(self._read, s, name), depth)
            if values is None:
                return None
            found[name] = values
        try:
            classes = [] if is_full else list(name_classes(self._read, s))
        except LimitError:
            return None
        for texts, handle, _ in classes:
            values = self._part(handle, depth)
            if values is not None and not values:
                continue
            names = words(texts, CANDIDATES)
            if names is None or (names and values is None):
                return None
            found.update((name.decode(), values or {}) for name in names)
        return found

    def _part(self, handle: Handle, depth: int) -> Values | None:
        if isinstance(handle, tuple) and isinstance(handle[0], bool):
            return None if handle[0] else {}
        return self.of(handle, depth - 1) if depth else None


def _numbers(s: Shape, _: int) -> list[Any] | None:
    return listed_numbers(s, CANDIDATES)


def _strings(s: Shape, _: int) -> list[str] | None:
    tree = s.strings.language_beside_excluded()
    found = () if tree is None else words(tree, CANDIDATES)
    return None if found is None else [word.decode() for word in found]
