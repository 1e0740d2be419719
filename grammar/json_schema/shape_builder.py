"""The shape of one schema object while its keywords are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .domains.arrays import ANY_ARRAYS, Arrays, Contains
from .domains.handles import ANYTHING, Handle, Keyed
from .domains.numbers import ANY_NUMBERS
from .domains.objects import ANY_OBJECTS, NO_PROPERTIES, Objects
from .domains.strings import ANY_STRINGS
from .domains.types import ANY_TYPE
from .shape import NOT_SEEN, Shape


class ShapeBuilder:
    """Conditions that readers of keywords set, one keyword after the other."""

    __slots__ = (
        "additional", "contains", "loose", "mask", "max_items", "max_properties", "min_items", "min_properties",
        "numbers", "path", "prefix", "properties", "required", "rest", "seen", "strings", "unique", "universals",
        "values",
    )  # fmt: skip

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen = NOT_SEEN
        self.mask = ANY_TYPE
        self.values: list[Any] | None = None
        self.loose = False
        self.numbers = ANY_NUMBERS
        self.strings = ANY_STRINGS
        self.prefix: tuple[Handle, ...] = ()
        self.rest: Handle = ANYTHING
        self.min_items = 0
        self.max_items: int | None = None
        self.contains: tuple[Contains, ...] = ()
        self.unique = False
        self.properties: Mapping[str, Handle] = NO_PROPERTIES
        self.additional: Handle = ANYTHING
        self.required: tuple[str, ...] = ()
        self.min_properties = 0
        self.max_properties: int | None = None
        self.universals: tuple[Keyed, ...] = ()

    def shape(self) -> Shape:
        """Return the shape of what has been set."""
        arrays, objects = ANY_ARRAYS, ANY_OBJECTS
        items = self.prefix, self.rest, self.min_items, self.max_items, self.contains, self.unique
        if items != ANY_ARRAYS[:6]:
            arrays = Arrays(*items)
        members = (
            self.properties, self.additional, self.required, self.min_properties, self.max_properties, self.universals,
        )  # fmt: skip
        if members != ANY_OBJECTS[:6]:
            objects = Objects(*members)
        return Shape(
            self.path, self.seen, self.mask, self.values, self.numbers, self.strings, arrays, objects, self.loose
        )
