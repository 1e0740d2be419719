"""Rules for objects and arrays some of whose conditions cannot be enforced, under ``SchemaOptions(lenient=True)``.

What cannot be enforced is only known when rules are made: a limit is passed, or a set has no complement here.  So the
rules are made, and where that fails a group of conditions is dropped, the dearest first, and they are made again.  What
is dropped is listed (:mod:`..widening`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..domains.arrays import ANY_ARRAYS
from ..domains.objects import ANY_OBJECTS
from ..domains.shape import Shape
from ..domains.types import ARRAY, OBJECT
from ..widening import CAUGHT
from .memo import Memo

# Conditions that are dropped together, a step at a time.
STEPS: dict[int, tuple[tuple[str, ...], ...]] = {
    OBJECT: (
        ("existentials",), ("universals",), ("min_properties", "max_properties"),
        ("properties", "additional", "required"),
    ),
    ARRAY: (("unique", "repeated"), ("contains",), ("min_items", "max_items"), ("prefix", "rest")),
}  # fmt: skip
_KEYWORD_OF = {
    "unique": "uniqueItems", "contains": "contains", "min_items": "minItems", "max_items": "maxItems",
    "min_properties": "minProperties", "max_properties": "maxProperties", "properties": "properties",
    "additional": "additionalProperties", "required": "required",
}  # fmt: skip


def relaxed(memo: Memo, shape: Shape, kind: int, make: Callable[[Shape], int | None]) -> int | None:
    """Return what `make` makes of the objects or arrays of a shape, as few conditions dropped as make that possible."""
    for fields in STEPS[kind]:
        if _given(shape, kind, fields):
            try:
                return make(shape)
            except CAUGHT as err:
                memo.may_be_empty = True  # rules may have been left unfinished
                shape = without(memo, shape, kind, fields, err)
    return make(shape)


def _given(shape: Shape, kind: int, fields: tuple[str, ...]) -> list[str]:
    domain, anything = (shape.objects, ANY_OBJECTS) if kind == OBJECT else (shape.arrays, ANY_ARRAYS)
    return [field for field in fields if getattr(domain, field) != getattr(anything, field)]


def without(memo: Memo, shape: Shape, kind: int, fields: tuple[str, ...], why: Exception | str) -> Shape:
    """Return a shape without some conditions on its objects or arrays."""
    given = _given(shape, kind, fields)
    for field in given:
        memo.document.widenings.add(shape.path, _KEYWORD_OF.get(field, ""), why)
    if not given:
        return shape
    domain, anything = (shape.objects, ANY_OBJECTS) if kind == OBJECT else (shape.arrays, ANY_ARRAYS)
    less: Any = domain._replace(**{field: getattr(anything, field) for field in given})
    return shape._replace(loose=True, objects=less) if kind == OBJECT else shape._replace(loose=True, arrays=less)


def without_names_in_doubt(memo: Memo, shape: Shape) -> Shape:
    """Return a shape without what cannot be known of the names of an object's members."""
    # Names that are forbidden for not being in a set that is too large are not known.
    objects = shape.objects
    known = tuple(u for u in objects.universals if u[0].key is None or not memo.read.is_loose(u[0].key))
    if len(known) < len(objects.universals):
        shape = shape._replace(loose=True, objects=objects._replace(universals=known))
        memo.document.widenings.add(shape.path, "propertyNames", "its names are not enforced exactly")
    if shape.path in memo.document.widenings.too_large:
        return without(memo, shape, OBJECT, ("existentials", "universals"), "the automaton of its names is too large")
    return shape
