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
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from wfsa.grammar.json_schema.alternatives import Alternatives
from wfsa.grammar.json_schema.few_values import FewValues, common_step, exact_number, has_no_fraction, steps_of
from wfsa.grammar.json_schema.finite import Key, json_key
from wfsa.grammar.json_schema.shape import (
    ARRAY,
    BOOLEAN,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Handle,
    Shape,
    item_of,
    number_of,
)
from wfsa.grammar.json_schema.spelling import text_language
from wfsa.grammar.regex.derivative import MAX_WORK, add_cuts, is_empty, is_of_characters, n_nodes, step
from wfsa.grammar.regex.restrict import nullable
from wfsa.grammar.regular import MAX_CODE_POINT, NOTHING, Regular

ENDLESS = 1 << 62
ENOUGH = 1 << 21  # words that are counted of a language
MAX_LISTED = 4096  # numbers of one range that are listed
MAX_FEW = 64  # values of other types that are listed
DEPTH = 3  # schemas in each other that are counted


class Count(NamedTuple):
    """Bounds on a number of values."""

    least: int
    most: int


UNKNOWN = Count(0, ENDLESS)


class ValueCounts:
    """Counts the values of the children of one document."""

    __slots__ = ("_counts", "_few", "_read")

    def __init__(self, read: Alternatives) -> None:
        self._read = read
        self._few = FewValues(read, MAX_FEW)
        self._counts: dict[tuple[int, int], tuple[Handle, Count]] = {}

    def of(self, handle: Handle, depth: int = DEPTH) -> Count:
        key = number_of(handle), depth
        if key not in self._counts:
            self._counts[key] = handle, UNKNOWN  # while a recursive child is being counted
            self._counts[key] = handle, self.of_union([handle], depth)
        return self._counts[key][1]

    def of_union(self, handles: Iterable[Handle], depth: int = DEPTH) -> Count:
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

    def _add(self, s: Shape, depth: int, listed: set[Key], counted: dict[int, list[Count]]) -> None:
        """Add the values of a shape to those that are listed, or their count to those that are counted."""
        accepts = self._read.members.accepts
        if s.values is not None:
            listed.update(json_key(v) for v in s.values if accepts(v, s))
            return
        constants = [None] * bool(s.mask & NULL) + [False, True] * bool(s.mask & BOOLEAN)
        listed.update(map(json_key, constants))
        for kind in (NUMBER, STRING, ARRAY, OBJECT):
            if not s.mask & kind:
                continue
            some = _listed_numbers(s) if kind == NUMBER else self._few_of(s.changed(mask=kind))
            if some is not None:
                listed.update(json_key(v) for v in some if accepts(v, s))
            else:
                counted.setdefault(kind, []).append(self._count(s, kind, depth))

    def _few_of(self, s: Shape) -> list[Any] | None:
        return None if s.loose else self._few.of_shape(s)

    def _count(self, s: Shape, kind: int, depth: int) -> Count:
        if kind == NUMBER:
            return _count_numbers(s)
        if kind == STRING:
            tree = text_language(s.min_length, s.max_length, s.patterns, s.formats, s.not_patterns, s.not_formats)
            count = Count(0, 0) if tree is None else n_words(tree)
            return Count(max(count.least - len(s.excluded), 0), count.most)
        if not depth:
            return UNKNOWN
        if kind == ARRAY:
            return Count(min(self._least_arrays(s, depth - 1), ENDLESS), ENDLESS)
        least, most = self._least_objects(s, depth - 1), self._most_objects(s, depth - 1)
        return Count(min(least, ENDLESS), ENDLESS if least < most else least)

    def _least_arrays(self, s: Shape, depth: int) -> int:
        if s.repeated or any(c.low or c.high is not None for c in s.contains):
            return 0
        total, product = 0, 1
        for n in range(s.min_items + 2):
            if n >= s.min_items:
                total += product
            if n == s.max_items or product >= ENDLESS or not product:
                break
            product *= max(self.of(item_of(s, n), depth).least - n * s.unique, 0)
        return total

    def _least_objects(self, s: Shape, depth: int) -> int:
        if s.existentials or any(keys.key is not None for keys, _ in s.universals):
            return 0
        member_of = self._read.compared.member_of
        product = math.prod(self.of(member_of(s, name), depth).least for name in s.required)
        others = [self.of(member_of(s, name), depth).least for name in s.properties if name not in s.required]
        others = sorted((least for least in others if least), reverse=True)
        missing = max(s.min_properties - len(s.required), 0)
        room = ENDLESS if s.max_properties is None else s.max_properties - len(s.required)
        if missing > room:
            return 0
        if room > missing or len(others) < missing:
            if len(others) < room and not s.universals and self.of(s.additional, depth).least:
                return product * ENDLESS  # members of other names, of which there are endless ones
        if len(others) < missing:
            return 0
        product *= math.prod(others[:missing])
        return product * math.prod(1 + least for least in others[missing:room])

    def _most_objects(self, s: Shape, depth: int) -> int:
        if s.universals or s.existentials or not (isinstance(s.additional, tuple) and s.additional[0] is False):
            return ENDLESS
        sizes = ((name, self.of(handle, depth).most) for name, handle in s.properties.items())
        return min(math.prod(most + (name not in s.required) for name, most in sizes), ENDLESS)


def _numbers_in(s: Shape) -> tuple[Fraction, range] | None:
    """A step and a range: the range's elements times the step are the numbers within the bounds of a shape.

    None if the numbers have no bound, or no step.
    """
    steps = steps_of(s)
    if s.low is None or s.high is None:
        return None
    low, high = Fraction(s.low), Fraction(s.high)
    if low > high or (low == high and (s.low_open or s.high_open)):
        return Fraction(1), range(0)
    if low == high and low:
        return low, range(1, 2)
    if not steps:
        return (Fraction(1), range(1)) if low == high else None
    common = common_step(steps)
    first, last = math.ceil(low / common), math.floor(high / common)
    first += s.low_open and first * common == low
    last -= s.high_open and last * common == high
    return common, range(first, last + 1)


def _listed_numbers(s: Shape) -> list[Any] | None:
    numbers = _numbers_in(s)
    if numbers is None or numbers[1].stop - numbers[1].start > MAX_LISTED:
        return None
    scaled = [n * numbers[0] for n in numbers[1]]
    return [exact_number(f) for f in scaled]


def _count_numbers(s: Shape) -> Count:
    if has_no_fraction(s):
        return Count(0, 0)
    numbers = _numbers_in(s)
    if numbers is None:
        # Numbers without a bound, or with fractions of any length.
        return UNKNOWN if s.not_multiples or (not s.mask & INTEGER and s.multiples) else Count(ENDLESS, ENDLESS)
    n = min(numbers[1].stop - numbers[1].start, ENDLESS)
    if s.not_multiples or not s.mask & INTEGER:
        return Count(0, n)
    return Count(n - len(s.excluded), n)


@lru_cache(maxsize=1024)
def n_words(tree: Regular) -> Count:
    """Bounds on the number of words of a tree of characters.

    Each layer holds the derivatives by all beginnings of one length, with the number of those beginnings.  Each
    beginning has a word of its own.  A layer deeper than there are derivatives has come through one of them twice.
    """
    seen: set[Regular] = set()
    layer: dict[Regular, int] = {} if tree == NOTHING else {tree: 1}
    ended, work, depth = 0, 0, 0
    while layer:
        seen |= layer.keys()
        if not all(map(is_of_characters, layer)):
            return Count(ended, ENDLESS)
        if depth >= len(seen):
            return Count(ENDLESS, ENDLESS)
        following: dict[Regular, int] = {}
        for at, n in layer.items():
            ended += n * nullable(at)
            edges = _edges(at)
            work += (1 + len(edges)) * n_nodes(at)
            for width, after in edges:
                following[after] = following.get(after, 0) + n * width
        least = ended + sum(following.values())
        if following and (work > MAX_WORK or least > ENOUGH):
            return Count(least, ENDLESS)
        layer, depth = following, depth + 1
    return Count(ended, ended)


def _edges(at: Regular) -> list[tuple[int, Regular]]:
    """(number of characters, the derivative by each of them), for derivatives that have words."""
    cuts = {0, 0xD800, 0xE000}
    add_cuts(at, cuts)
    bounds = [*sorted(c for c in cuts if c <= MAX_CODE_POINT), MAX_CODE_POINT + 1]
    found = []
    for low, end in pairwise(bounds):
        after = NOTHING if 0xD800 <= low < 0xE000 else step(at, low)
        if after != NOTHING and not is_empty(after):
            found.append((end - low, after))
    return found
