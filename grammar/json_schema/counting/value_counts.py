"""Bounds on the number of different values of a schema, for arrays whose items must differ.

    least   that many different values certainly exist
    most    no more exist; `ENDLESS` where no bound is known

The two are equal where the count is exact: ranges of whole numbers and multiples, ``enum``, booleans, null, strings of
a finite language, small arrays and objects, objects with named members of such values, and unions of these.  Values
that can be listed are listed and joined as sets.  Longer ranges and languages are counted.  A union of several of one
type is bounded by its largest part and by their sum.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...language import ENDLESS, UNKNOWN, Count, n_words
from ..domains.handles import Handle, number_of
from ..domains.objects import Objects
from ..domains.shape import Shape
from ..domains.types import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from ..read.alternatives import Alternatives
from ..spelling.finite import Key, json_key
from .few_values import FewValues
from .most_values import MostValues
from .scalar_counts import count_numbers, listed_numbers

MAX_LISTED = 4096  # numbers of one range that are listed
MAX_FEW = 64  # values of other types that are listed
DEPTH = 3  # schemas in each other that are counted


class ValueCounts:
    """Counts the values of the children of one document."""

    __slots__ = ("_counts", "_few", "_most", "_read")

    def __init__(self, read: Alternatives) -> None:
        self._read = read
        self._few = FewValues(read, MAX_FEW)
        self._most = MostValues(read)
        self._counts: dict[tuple[int, int], tuple[Handle, Count]] = {}

    def of(self, handle: Handle, depth: int = DEPTH) -> Count:
        key = number_of(handle), depth
        if key not in self._counts:
            self._counts[key] = handle, UNKNOWN  # while a recursive child is being counted
            self._counts[key] = handle, self.of_union([handle], depth)
        return self._counts[key][1]

    def of_union(self, handles: Sequence[Handle], depth: int = DEPTH) -> Count:
        """Bounds on the number of values that are in any of the given children."""
        listed: set[Key] = set()
        counted: dict[int, list[Count]] = {}
        for handle in handles:
            for shape in self._read.described(handle):
                self._add(shape, depth, listed, counted)
        sizes = Counter(key[0] for key in listed)
        least = most = 0
        for kind, tag in ((NUMBER, "n"), (STRING, "s"), (ARRAY, "a"), (OBJECT, "o"), (BOOLEAN, "b")):
            parts = counted.get(kind, [])
            least += max((sizes[tag], *(part.least for part in parts)))
            most += sizes[tag] + sum(part.most for part in parts)
        return Count(min(least, ENDLESS), min(most, ENDLESS))

    def at_least(self, handles: Sequence[Handle], need: int) -> Count:
        """Like `of_union` where `need` values are needed: if there may be fewer, arrays and objects are bounded too."""
        count = self.of_union(handles)
        if count.least >= need or count.most < ENDLESS:
            return count
        return Count(count.least, self._most.of_union(handles))

    def _add(self, s: Shape, depth: int, listed: set[Key], counted: dict[int, list[Count]]) -> None:
        """Add the values of a shape to those that are listed, or their count to those that are counted."""
        accepts = self._read.accepts
        if s.values is not None:
            listed.update(json_key(v) for v in s.values if accepts(v, s))
            return
        constants = [None] * bool(s.mask & NULL) + [False, True] * bool(s.mask & BOOLEAN)
        listed.update(map(json_key, constants))
        for kind in (NUMBER, STRING, ARRAY, OBJECT):
            if not s.mask & kind:
                continue
            some = listed_numbers(s, MAX_LISTED) if kind == NUMBER else self._few_of(s._replace(mask=kind))
            if some is not None:
                listed.update(json_key(v) for v in some if accepts(v, s))
            else:
                counted.setdefault(kind, []).append(self._count(s, kind, depth))

    def _few_of(self, s: Shape) -> list[Any] | None:
        return None if s.loose else self._few.of_shape(s)

    def _count(self, s: Shape, kind: int, depth: int) -> Count:
        if kind == NUMBER:
            return count_numbers(s)
        if kind == STRING:
            tree = s.strings.language_beside_excluded()
            count = Count(0, 0) if tree is None else n_words(tree)
            return Count(max(count.least - len(s.strings.excluded), 0), count.most)
        if not depth:
            return UNKNOWN
        least = self._least_arrays(s, depth - 1) if kind == ARRAY else self._least_objects(s, depth - 1)
        return Count(min(least, ENDLESS), ENDLESS)

    def _least_arrays(self, s: Shape, depth: int) -> int:
        if s.arrays.repeated or any(c.low or c.high is not None for c in s.arrays.contains):
            return 0
        total, product = 0, 1
        for n in range(s.arrays.min_items + 2):
            if n >= s.arrays.min_items:
                total += product
            if n == s.arrays.max_items or product >= ENDLESS or not product:
                break
            product *= max(self.of(s.arrays.item(n), depth).least - n * s.arrays.unique, 0)
        return total

    def _least_objects(self, s: Shape, depth: int) -> int:
        objects = s.objects
        if objects.existentials or any(keys.key is not None for keys, _ in objects.universals):
            return 0
        product = math.prod(self._least_of_member(objects, name, depth) for name in objects.required)
        optional = [name for name in objects.properties if name not in objects.required]
        others = [self._least_of_member(objects, name, depth) for name in optional]
        others = sorted((least for least in others if least), reverse=True)
        missing = max(objects.min_properties - len(objects.required), 0)
        room = ENDLESS if objects.max_properties is None else objects.max_properties - len(objects.required)
        if missing > room:
            return 0
        if room > missing or len(others) < missing:
            if len(others) < room and not objects.universals and self.of(objects.additional, depth).least:
                return product * ENDLESS  # members of other names, of which there are endless ones
        if len(others) < missing:
            return 0
        product *= math.prod(others[:missing])
        return product * math.prod(1 + least for least in others[missing:room])

    def _least_of_member(self, objects: Objects, name: str, depth: int) -> int:
        return self.of(objects.all_of_member(name, self._read), depth).least
