"""Rules for objects and arrays some of whose conditions cannot be enforced, under ``SchemaOptions(lenient=True)``.

What cannot be enforced is only known when rules are made: a limit is passed, or a set has no complement here.  So the
rules are made, and where that fails a group of conditions is dropped, the dearest first, and they are made again.  What
is dropped is listed (:mod:`.widening`).
"""

from __future__ import annotations

from collections.abc import Callable

from .memo import Memo
from .shape import Shape
from .widening import CAUGHT

# Fields of a shape that are dropped together, a step at a time.
OBJECT_STEPS: tuple[tuple[str, ...], ...] = (
    ("existentials",), ("universals",), ("min_properties", "max_properties"),
    ("properties", "additional", "required"),
)  # fmt: skip
ARRAY_STEPS: tuple[tuple[str, ...], ...] = (
    ("unique", "repeated"), ("contains",), ("min_items", "max_items"), ("prefix", "rest"),
)  # fmt: skip
_KEYWORD_OF = {
    "unique": "uniqueItems", "contains": "contains", "min_items": "minItems", "max_items": "maxItems",
    "min_properties": "minProperties", "max_properties": "maxProperties", "properties": "properties",
    "additional": "additionalProperties", "required": "required",
}  # fmt: skip


def relaxed(
    memo: Memo, shape: Shape, make: Callable[[Shape], int | None], steps: tuple[tuple[str, ...], ...]
) -> int | None:
    """What `make` makes of a shape, as few of its conditions dropped as make that possible."""
    for fields in steps:
        if any(field in shape.__dict__ for field in fields):
            try:
                return make(shape)
            except CAUGHT as err:
                memo.may_be_empty = True  # rules may have been left unfinished
                drop(memo, shape, fields, err)
    return make(shape)


def drop(memo: Memo, shape: Shape, fields: tuple[str, ...], why: Exception | str) -> None:
    """Take conditions away from a shape."""
    for field in fields:
        if field in shape.__dict__:
            del shape.__dict__[field]
            shape.loose = True
            memo.document.widenings.add(shape.path, _KEYWORD_OF.get(field, ""), why)


def without_names_in_doubt(memo: Memo, shape: Shape) -> None:
    """Drop what cannot be known of the names of an object's members."""
    # Names that are forbidden for not being in a set that is too large are not known.
    known = tuple(u for u in shape.universals if u[0].key is None or not memo.read.members.is_loose(u[0].key))
    if len(known) < len(shape.universals):
        shape.universals = known
        shape.loose = True
        memo.document.widenings.add(shape.path, "propertyNames", "its names are not enforced exactly")
    if shape.path in memo.document.widenings.too_large:
        drop(memo, shape, ("existentials", "universals"), "the automaton of its names is too large")
