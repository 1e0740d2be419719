"""All values that a schema has, where they are few: those listed by ``enum``, and those that its other keywords leave.

Told for every type: whole numbers and multiples in a range, strings of a finite language, arrays and objects of such
values.  The candidates are made from a shape's own bounds, one part after the other, and `Alternatives.accepts` decides
on each of them; where the candidates become many, or nothing bounds them, the answer is "not few".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

from wfsa.errors import LimitError

from ..regex.derivative import MAX_WORK, add_cuts, is_empty, is_of_characters, n_nodes, step
from ..regex.restrict import nullable
from ..regular import MAX_CODE_POINT, NOTHING, Alt, And, Cat, Chars, Literal, Minus, Regular, Repeat
from .alternatives import Alternatives
from .finite import json_key
from .name_classes import listed_names, name_classes, value_of
from .scalar_counts import listed_numbers
from .shape import (
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Handle,
    Shape,
    asks_nothing,
    item_of,
)
from .spelling import contains_bytes, text_language

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
            return [v for v in s.values if self._read.members.accepts(v, s)]
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
            found += [v for v in some if self._read.members.accepts(v, s)]
        return found

    def _arrays(self, s: Shape, depth: int) -> list[Any] | None:
        found: list[list[Any]] = [[]]
        longest = found
        for i in range(CANDIDATES):
            if not longest or i == s.max_items:
                return found
            values = self._part(item_of(s, i), depth)
            if values is None or len(longest) * len(values) > CANDIDATES:
                return None
            longest = [[*items, v] for items in longest for v in values.values()]
            if s.unique:
                longest = [items for items in longest if len({json_key(v) for v in items}) == len(items)]
            found += longest
        return None

    def _objects(self, s: Shape, depth: int) -> list[Any] | None:
        members = self._members(s, depth) if s.max_properties != 0 else {}
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
        is_full = s.max_properties is not None and s.max_properties <= len(s.required)
        if not is_full and not (s.universals or s.existentials) and asks_nothing(s.additional):
            return None  # the usual case: any name
        found: dict[str, Values] = {}
        for name in s.required if is_full else listed_names(s):
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
            names = words(texts)
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
    tree = text_language(s.min_length, s.max_length, s.patterns, s.formats, s.not_patterns, s.not_formats)
    found = set() if tree is None else words(tree)
    return None if found is None else sorted(w.decode() for w in found)


def words(tree: Regular) -> set[bytes] | None:
    """The words of a regular language of texts, or None if they are not few."""
    found: set[bytes] | None = None
    match tree:
        case Literal(word):
            found = {word}
        case Chars(ranges):
            if sum(high - low + 1 for low, high in ranges) <= CANDIDATES:
                found = {chr(c).encode() for low, high in ranges for c in range(low, high + 1)}
        case Cat(parts):
            found = _joined(map(words, parts))
        case Alt(parts):
            each = [words(part) for part in parts]
            if None not in each:
                found = set().union(*(some for some in each if some is not None))
        case Repeat(body, low, high):
            inner = words(body)
            if inner is not None and inner <= {b""}:
                found = {b""} if inner or not low else set()
            elif inner is not None and high is not None and high <= CANDIDATES:
                found = set() if low else {b""}
                for n in range(max(low, 1), high + 1):
                    more = _joined([inner] * n)
                    if more is None or len(found) > CANDIDATES:
                        return None
                    found |= more
        case And(parts):
            found = next((some for part in parts if (some := words(part)) is not None), None)
            if found is not None:
                found = {w for w in found if all(contains_bytes(part, w) for part in parts)}
            else:
                found = _words_by_derivatives(tree)
        case Minus(left, right):
            found = words(left)
            if found is not None:
                found = {w for w in found if not contains_bytes(right, w)}
            else:
                found = _words_by_derivatives(tree)
        case _:
            found = None
    return found if found is None or len(found) <= CANDIDATES else None


def _joined(parts: Iterable[set[bytes] | None]) -> set[bytes] | None:
    """The concatenation; an empty part makes all of it empty, whatever the others are."""
    found: set[bytes] | None = {b""}
    for part in parts:
        if part is not None and not part:
            return set()
        if found is None or part is None or len(found) * len(part) > CANDIDATES:
            found = None
            continue
        found = {a + b for a, b in product(found, part)}
    return found


@lru_cache(maxsize=1024)
def _words_by_derivatives(tree: Regular) -> set[bytes] | None:
    """The words of a tree of characters, or None if they are not few, or not seen after some work."""
    found: set[str] = set()
    todo = [(tree, "")]
    work = 0
    while todo:
        at, text = todo.pop()
        if not is_of_characters(at):
            return None
        if nullable(at):
            found.add(text)
        cuts = {0}
        add_cuts(at, cuts)
        work += len(cuts) * n_nodes(at)
        bounds = [*sorted(c for c in cuts if c <= MAX_CODE_POINT), MAX_CODE_POINT + 1]
        for low, end in pairwise(bounds):
            following = step(at, low)
            if following == NOTHING or is_empty(following):
                continue
            if end - low + len(found) + len(todo) > CANDIDATES or work > MAX_WORK:
                return None
            todo += [(following, text + chr(c)) for c in range(low, end) if not 0xD800 <= c <= 0xDFFF]
    return {word.encode() for word in found}
