"""The normal form of a schema: alternatives of conjunctive shapes.

Problem.  Keywords are conditions that only bind together: ``required`` names what ``properties`` describes, ``enum``
is cut by ``minimum``.  So no keyword can be lowered by itself.

A schema is first read as a union of *shapes*.  A shape is a set of JSON values given by one condition per JSON type:

    mask         which types at all
    numbers      an interval                          (low, low_open, high, high_open)
    strings      length bounds, patterns, formats
    arrays       schemas of the first items, of the rest, and a range for the count
    objects      schemas of the named properties, of all others, and the names that must be there
    values       if not None: nothing but these values (and the conditions above cut them)

Shapes are closed under intersection (`intersect`); unions stay lists.  Children are not read: a child is a *handle*,
which names schemas without looking into them, so that recursion stays symbolic:

    (schema, path)     one schema of the document
    Conjunction        several at once, interned by the schemas' identities: there are finitely many

What is a complement of shapes (``not``, ``oneOf``) and what adds a condition (``allOf``) fits in here too.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from wfsa.grammar.json_schema.finite import json_key

NULL, BOOLEAN, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << i for i in range(7))  # FRACTION: numbers not whole
NUMBER = INTEGER | FRACTION
SCALARS = NULL | BOOLEAN | NUMBER | STRING
ANY_TYPE = SCALARS | ARRAY | OBJECT

Site = tuple[Any, str]  # a schema (dict or bool) and its path


class Conjunction:
    """The values that satisfy all of `sites`."""

    __slots__ = ("sites", "symbol")

    def __init__(self, sites: tuple[Site, ...]) -> None:
        self.sites = sites
        self.symbol: int | None = UNSEEN  # memo of the lowering


Handle = Site | Conjunction

ANYTHING: Site = (True, "$")

# Where the lowering of a shape's objects (arrays) stands.  Symbols of nonterminals are negative.
UNSEEN, OPEN = 0, 1


class Shape:
    """One conjunctive alternative.  Fields at their default are not stored: most shapes use few of them."""

    path: str
    free = True  # no condition at all
    mask = ANY_TYPE
    values: list[Any] | None = None

    low: Decimal | None = None
    low_open = False
    high: Decimal | None = None
    high_open = False

    min_length = 0
    max_length: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()

    prefix: tuple[Handle, ...] = ()
    rest: Handle = ANYTHING
    min_items = 0
    max_items: int | None = None

    properties: dict[str, Handle] = {}  # noqa: RUF012  # never changed in place
    additional: Handle = ANYTHING
    required: tuple[str, ...] = ()

    object_symbol: int | None = UNSEEN
    array_symbol: int | None = UNSEEN

    def __init__(self, path: str) -> None:
        self.path = path


def property_of(shape: Shape, name: str) -> Handle:
    """What `shape` asks of a property."""
    got = shape.properties.get(name)
    return shape.additional if got is None else got


def item_of(shape: Shape, index: int) -> Handle:
    """What `shape` asks of an item."""
    return shape.prefix[index] if index < len(shape.prefix) else shape.rest


def intersect(a: Shape, b: Shape, conjoin: Callable[[Handle, Handle], Handle]) -> Shape | None:
    """The values in both, or None if that is seen to be empty.  Properties of `a` come first in the order."""
    if a.free:
        return b
    if b.free:
        return a
    mask = a.mask & b.mask
    if not mask:
        return None
    out = Shape(a.path)
    out.free = False
    out.mask = mask
    if a.values is None:
        out.values = b.values
    elif b.values is None:
        out.values = a.values
    else:
        keys = {json_key(v) for v in b.values}
        out.values = [v for v in a.values if json_key(v) in keys]
    if mask & NUMBER:
        _intersect_numbers(out, a, b)
    if mask & STRING:
        out.min_length = max(a.min_length, b.min_length)
        out.max_length = _least(a.max_length, b.max_length)
        out.patterns = tuple(dict.fromkeys(a.patterns + b.patterns))
        out.formats = tuple(dict.fromkeys(a.formats + b.formats))
    if mask & ARRAY:
        n = max(len(a.prefix), len(b.prefix))
        out.prefix = tuple(conjoin(item_of(a, i), item_of(b, i)) for i in range(n))
        out.rest = conjoin(a.rest, b.rest)
        out.min_items = max(a.min_items, b.min_items)
        out.max_items = _least(a.max_items, b.max_items)
    if mask & OBJECT:
        names = dict.fromkeys((*a.properties, *b.properties))
        out.properties = {name: conjoin(property_of(a, name), property_of(b, name)) for name in names}
        out.additional = conjoin(a.additional, b.additional)
        out.required = tuple(dict.fromkeys(a.required + b.required))
    return out


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _intersect_numbers(out: Shape, a: Shape, b: Shape) -> None:
    lows = [(s.low, s.low_open) for s in (a, b) if s.low is not None]
    highs = [(s.high, not s.high_open) for s in (a, b) if s.high is not None]
    if lows:
        out.low, out.low_open = max(lows)
    if highs:
        out.high, closed = min(highs)
        out.high_open = not closed
