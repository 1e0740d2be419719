"""The normal form of a schema: alternatives of conjunctive shapes.

Problem.  Keywords are conditions that only bind together: ``required`` names what ``properties`` describes, ``enum``
is cut by ``minimum``.  So no keyword can be lowered by itself.

A schema is first read as a union of *shapes*.  A shape is a set of JSON values, given by conditions per JSON type that
all hold:

    mask         which types at all
    values       if not None: nothing but these values
    numbers      :class:`.domains.numbers.Numbers`
    strings      :class:`.domains.strings.Strings`
    arrays       schemas of the first items and of the rest, a range for the count, `contains`, `unique`
    objects      schemas of the named properties and of all others, the names that must be there, a range for the
                 count, `universals` (every property of a class of keys) and `existentials` (of each, some property
                 of one of its classes)

Shapes are closed under intersection (`intersect`); the complement of a shape is a union of shapes, one for each of its
conditions (`complement`: De Morgan, where the complement of "every" is "some").  Unions stay lists.  Children are not
read: a child is a *handle*, which names schemas without looking into them, so that recursion stays symbolic:

    (schema, path)     one schema of the document
    Compound           "and", "or" or "not" of handles, interned: there are finitely many
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, Literal, NamedTuple

from wfsa.errors import SchemaError

from .domains.conditions import least
from .domains.numbers import ANY_NUMBERS, Numbers
from .domains.strings import ANY_STRINGS, Strings
from .domains.types import (
    ANY_TYPE,
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    type_of,
)
from .finite import json_key

Site = tuple[Any, str]  # a schema (dict or bool) and its path


class Compound:
    """The values in all ("and") or any ("or") of `parts`, or outside the only one ("not")."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Literal["and", "or", "not"], parts: tuple[Handle, ...]) -> None:
        self.kind = kind
        self.parts = parts


Handle = Site | Compound

ANYTHING: Site = (True, "$")
NOTHING_AT_ALL: Site = (False, "$")

# Where the lowering of a shape's objects (arrays) stands.  Symbols of nonterminals are negative.
UNSEEN, OPEN = 0, 1


class BeingRead(SchemaError):
    """A schema was met again while it was being read; `key` is its key among those that are open."""

    def __init__(self, key: tuple[int, Tracks], path: str) -> None:
        super().__init__(f"the references form a loop without content at {path}")
        self.key = key


def number_of(handle: Handle) -> int:
    """What tells children apart: which schema, wherever it is met."""
    return id(handle[0] if isinstance(handle, tuple) else handle)


def path_of(handle: Handle) -> str:
    """A place to name in a message."""
    while isinstance(handle, Compound):
        handle = handle.parts[0]
    return handle[1]


class Contains(NamedTuple):
    """From `low` to `high` of the items from index `start` on are in `handle`."""

    handle: Handle
    low: int
    high: int | None
    start: int = 0


class KeyClass(NamedTuple):
    """Keys other than `names`, not matching any of `patterns`, matching `pattern`, and in the schema `key`.

    only: the class has just this key; all else is at its default then.
    """

    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    pattern: str | None = None
    key: Handle | None = None
    only: str | None = None


Keyed = tuple[KeyClass, Handle]


class Tracks(IntEnum):
    """How far shapes note what the keywords have evaluated."""

    NONE = 0
    EACH = 1  # each branch of an ``anyOf`` for itself
    ALL = 2  # what satisfies several branches has been evaluated by all of them


class Seen(NamedTuple):
    """What the keywords of a schema have evaluated, for ``unevaluated...`` and for :mod:`.closing`."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    all_names: bool = False
    items: int = 0
    all_items: bool = False
    contained: tuple[Handle, ...] = ()
    of_objects: bool = False  # does a keyword speak of objects, or name their type

    def united(self, other: Seen) -> Seen:
        return Seen(
            self.names | other.names, self.patterns | other.patterns, self.all_names or other.all_names,
            max(self.items, other.items), self.all_items or other.all_items,
            _joined(self.contained, other.contained), self.of_objects or other.of_objects,
        )  # fmt: skip


NOT_SEEN = Seen()


class Shape:
    """One conjunctive alternative.  Fields at their default are not stored: most shapes use few of them."""

    path: str
    free = True  # no condition at all
    mask = ANY_TYPE
    values: list[Any] | None = None
    numbers = ANY_NUMBERS
    strings = ANY_STRINGS

    prefix: tuple[Handle, ...] = ()
    rest: Handle = ANYTHING
    min_items = 0
    max_items: int | None = None
    contains: tuple[Contains, ...] = ()
    unique = False
    repeated = False  # some item twice

    properties: dict[str, Handle] = {}  # noqa: RUF012  # never changed in place
    additional: Handle = ANYTHING
    required: tuple[str, ...] = ()
    min_properties = 0
    max_properties: int | None = None
    universals: tuple[Keyed, ...] = ()
    existentials: tuple[tuple[Keyed, ...], ...] = ()

    seen: Seen = NOT_SEEN
    loose = False  # too large: a condition was dropped (:mod:`.widening`)

    object_symbol: int | None = UNSEEN
    array_symbol: int | None = UNSEEN

    def __init__(self, path: str, **fields: Any) -> None:
        self.path = path
        if fields:
            self.free = False
            self.__dict__.update(fields)

    def changed(self, **fields: Any) -> Shape:
        """A copy with other fields."""
        out = Shape(self.path)
        out.__dict__.update(self.__dict__)
        out.__dict__.pop("object_symbol", None)
        out.__dict__.pop("array_symbol", None)
        out.free = False
        out.__dict__.update(fields)
        return out


def unseen(shape: Shape) -> Shape:
    """The same without the note of what was evaluated."""
    if shape.seen is NOT_SEEN:
        return shape
    out = Shape(shape.path)
    out.__dict__.update(shape.__dict__)
    for field in ("seen", "object_symbol", "array_symbol"):
        out.__dict__.pop(field, None)
    return out


def property_of(shape: Shape, name: str) -> Handle:
    """What `properties` and `additional` of `shape` ask of a property."""
    got = shape.properties.get(name)
    return shape.additional if got is None else got


def item_of(shape: Shape, index: int) -> Handle:
    """What `shape` asks of an item, `contains` aside."""
    return shape.prefix[index] if index < len(shape.prefix) else shape.rest


def intersect(a: Shape, b: Shape, conjoin: Callable[[Handle, Handle], Handle]) -> Shape | None:
    """The values in both, or None if that is seen to be empty.  Properties of `a` come first in the order."""
    if a.free and a.seen is NOT_SEEN:
        return b
    if b.free and b.seen is NOT_SEEN:
        return a
    mask = a.mask & b.mask
    if (a.unique or b.unique) and (a.repeated or b.repeated):
        mask &= ~ARRAY  # items that all differ, and two that are equal
    if not mask:
        return None
    out = Shape(a.path)
    out.free = a.free and b.free
    out.mask = mask
    if a.seen is not NOT_SEEN or b.seen is not NOT_SEEN:
        out.seen = a.seen.united(b.seen)
    if a.loose or b.loose:
        out.loose = True
    if a.values is None:
        out.values = b.values
    elif b.values is None:
        out.values = a.values
    else:
        keys = {json_key(v) for v in b.values}
        out.values = [v for v in a.values if json_key(v) in keys]
    if mask & NUMBER and (a.numbers is not ANY_NUMBERS or b.numbers is not ANY_NUMBERS):
        out.numbers = a.numbers.meet(b.numbers)
    if mask & STRING and (a.strings is not ANY_STRINGS or b.strings is not ANY_STRINGS):
        out.strings = a.strings.meet(b.strings)
    if mask & ARRAY:
        n = max(len(a.prefix), len(b.prefix))
        out.prefix = tuple(conjoin(item_of(a, i), item_of(b, i)) for i in range(n))
        out.rest = conjoin(a.rest, b.rest)
        out.min_items = max(a.min_items, b.min_items)
        out.max_items = least(a.max_items, b.max_items)
        if a.contains or b.contains:
            out.contains = _joined(a.contains, b.contains)
        out.unique = a.unique or b.unique
        out.repeated = a.repeated or b.repeated
    if mask & OBJECT:
        out.properties = _intersect_properties(a, b, conjoin)
        out.additional = conjoin(a.additional, b.additional)
        out.required = tuple(dict.fromkeys(a.required + b.required))
        out.min_properties = max(a.min_properties, b.min_properties)
        out.max_properties = least(a.max_properties, b.max_properties)
        if a.universals or b.universals:
            out.universals = _joined(a.universals, b.universals)
        if a.existentials or b.existentials:
            out.existentials = _joined(a.existentials, b.existentials)
    return out


def _intersect_properties(a: Shape, b: Shape, conjoin: Callable[[Handle, Handle], Handle]) -> dict[str, Handle]:
    """Those of `a` come first.  What only one names, and the other asks nothing of, is not looked at."""
    out = dict(a.properties)
    theirs = b.properties
    for name in theirs if asks_nothing(b.additional) else a.properties:
        if name in out:
            mine, other = out[name], theirs.get(name, b.additional)
            if mine is not other:
                out[name] = conjoin(mine, other)
    nothing = asks_nothing(a.additional)
    for name, other in theirs.items():
        if name not in out:
            out[name] = other if nothing else conjoin(a.additional, other)
    return out


def asks_nothing(handle: Handle) -> bool:
    return isinstance(handle, tuple) and handle[0] is True


def complement(
    shape: Shape, values: list[Any] | None, negate: Callable[[Handle], Handle], telling: str | None
) -> Iterator[list[Shape]]:
    """What is not in a shape, as an intersection of unions.

    values: those of it that satisfy all its conditions.  telling: a required property; the objects that fail at
    another condition are those that pass at this one, so that the complements of several shapes that differ in it
    meet in few alternatives.
    """
    if values is not None:
        yield from _without_values(shape.path, values)
        return
    yield list(_without(shape, negate, telling))


def _without(s: Shape, negate: Callable[[Handle], Handle], telling: str | None) -> Iterator[Shape]:
    path = s.path
    if s.mask != ANY_TYPE:
        yield Shape(path, mask=ANY_TYPE & ~s.mask)
    excluded = [*s.numbers.excluded.values(), *s.strings.excluded]
    if excluded:
        yield Shape(path, values=excluded)
    number = s.mask & NUMBER
    if number:
        for numbers in s.numbers.complement():
            yield Shape(path, mask=number, numbers=numbers)
    if s.mask & STRING:
        for strings in s.strings.complement():
            yield Shape(path, mask=STRING, strings=strings)
    if s.mask & ARRAY:
        if s.min_items:
            yield Shape(path, mask=ARRAY, max_items=s.min_items - 1)
        if s.max_items is not None:
            yield Shape(path, mask=ARRAY, min_items=s.max_items + 1)
        for i, item in enumerate(s.prefix):
            if not (isinstance(item, tuple) and item[0] is True):
                before = (ANYTHING,) * i
                yield Shape(path, mask=ARRAY, prefix=(*before, negate(item)), min_items=i + 1)
        if not (isinstance(s.rest, tuple) and s.rest[0] is True):
            n = len(s.prefix)
            yield Shape(path, mask=ARRAY, contains=(Contains(negate(s.rest), 1, None, n),), min_items=n + 1)
        for c in s.contains:
            if c.low:
                yield Shape(path, mask=ARRAY, contains=(Contains(c.handle, 0, c.low - 1, c.start),))
            if c.high is not None:
                yield Shape(path, mask=ARRAY, contains=(Contains(c.handle, c.high + 1, None, c.start),))
        if s.unique:
            yield Shape(path, mask=ARRAY, repeated=True)
        if s.repeated:
            yield Shape(path, mask=ARRAY, unique=True)
    if s.mask & OBJECT:
        if telling is None:
            yield from _other_objects(s, negate)
            return
        child = property_of(s, telling)
        yield Shape(path, mask=OBJECT, properties={telling: negate(child)})
        for other in _other_objects(s, negate):
            if telling not in other.properties:
                properties = {telling: child, **other.properties}
                yield other.changed(properties=properties, required=(telling, *other.required))


def _other_objects(s: Shape, negate: Callable[[Handle], Handle]) -> Iterator[Shape]:
    """The objects that fail at a condition of a shape.

    That some property fails is one condition, whichever it is: so complements of many shapes meet in few alternatives.
    """
    path = s.path
    for name in s.required:
        # Without the name, or with another value there: one shape.
        yield Shape(path, mask=OBJECT, properties={name: negate(property_of(s, name))})
    failing: list[Keyed] = []
    for name, child in s.properties.items():
        if name not in s.required and not asks_nothing(child):
            failing.append((KeyClass(only=name), negate(child)))
    if not asks_nothing(s.additional):
        failing.append((KeyClass(names=frozenset(s.properties)), negate(s.additional)))
    failing += [(keys, negate(child)) for keys, child in s.universals]
    if failing:
        yield some_property(path, tuple(failing))
    for wanted in s.existentials:
        yield Shape(path, mask=OBJECT, universals=tuple((keys, negate(child)) for keys, child in wanted))
    if s.min_properties:
        yield Shape(path, mask=OBJECT, max_properties=s.min_properties - 1)
    if s.max_properties is not None:
        yield Shape(path, mask=OBJECT, min_properties=s.max_properties + 1)


def some_property(path: str, wanted: tuple[Keyed, ...]) -> Shape:
    """The objects with some property of one of these classes."""
    keys, child = wanted[0]
    if len(wanted) == 1 and keys.only is not None:
        return Shape(path, mask=OBJECT, properties={keys.only: child}, required=(keys.only,))
    return Shape(path, mask=OBJECT, existentials=(wanted,), min_properties=1)


def _without_values(path: str, values: list[Any]) -> Iterator[list[Shape]]:
    """All values but these."""
    mask = ANY_TYPE
    if any(v is None for v in values):
        mask &= ~NULL
    bools = {v for v in values if isinstance(v, bool)}
    if len(bools) == 2:
        mask &= ~BOOLEAN
    texts = {v: v for v in values if isinstance(v, str)}
    numbers = {json_key(v): v for v in values if type_of(v) == NUMBER}
    fields: dict[str, Any] = {"numbers": Numbers(excluded=numbers)} if numbers else {}
    if texts:
        fields["strings"] = Strings(excluded=texts)
    plain = Shape(path, mask=mask, **fields)
    if len(bools) == 1:
        yield [plain.changed(mask=mask & ~BOOLEAN), Shape(path, values=[not bools.pop()])]
    else:
        yield [plain]
    for v in values:
        if isinstance(v, list):
            yield [
                Shape(path, mask=ANY_TYPE & ~ARRAY),
                Shape(path, mask=ARRAY, min_items=len(v) + 1),
                *([Shape(path, mask=ARRAY, max_items=len(v) - 1)] if v else []),
                *(
                    Shape(path, mask=ARRAY, prefix=(*(ANYTHING,) * i, ({"not": {"enum": [x]}}, path)), min_items=i + 1)
                    for i, x in enumerate(v)
                ),
            ]
        elif isinstance(v, dict):
            others = KeyClass(names=frozenset(v))
            yield [
                Shape(path, mask=ANY_TYPE & ~OBJECT),
                *(Shape(path, mask=OBJECT, properties={name: (False, path)}) for name in v),
                some_property(
                    path,
                    (
                        (others, ANYTHING),
                        *((KeyClass(only=name), ({"not": {"enum": [x]}}, path)) for name, x in v.items()),
                    ),
                ),
            ]


def _joined(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*a, *(x for x in b if not any(x is y for y in a)))
