"""Whether a value fits: a shape, a child, a class of property names.

Some formats are known from two sides only (:mod:`.formats`): what has them, and, `wide`, what may have them.  Who
negates the answer asks for the other one.  `sure` asks in the same way for what is certainly in a set that is loose,
which is nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from .domains.strings import matches
from .domains.types import ARRAY, BOOLEAN, FRACTION, INTEGER, NULL, NUMBER, OBJECT, STRING
from .finite import Key, is_whole, json_key
from .shape import Handle, KeyClass, Shape, item_of, property_of


class Membership:
    """Tells of values whether they fit."""

    __slots__ = ("_alternatives", "_value_keys", "_wholes")

    def __init__(self, alternatives: Callable[[Handle], list[Shape]], wholes: str) -> None:
        self._alternatives = alternatives  # of a child
        self._wholes = wholes
        self._value_keys: dict[int, tuple[Any, frozenset[Key]]] = {}

    def accepts(self, value: Any, shape: Shape, wide: bool = False, sure: bool = False) -> bool:
        """Whether a value satisfies the conditions of a shape, `values` aside."""
        mask = shape.mask
        if sure and shape.loose:
            return False
        if isinstance(value, str):
            return bool(mask & STRING) and shape.strings.accepts(value, wide)
        if value is None:
            return bool(mask & NULL)
        if isinstance(value, bool):
            return bool(mask & BOOLEAN)
        if isinstance(value, (int, float, Decimal)):
            kind = INTEGER if is_whole(value) else FRACTION
            if wide and self._wholes != "value":
                kind = NUMBER  # in draft 4, 1.0 is no integer
            return bool(mask & kind) and shape.numbers.accepts(value)
        if isinstance(value, list):
            if not mask & ARRAY or len(value) < shape.min_items:
                return False
            if shape.max_items is not None and len(value) > shape.max_items:
                return False
            if shape.unique or shape.repeated:
                if (len({json_key(v) for v in value}) < len(value)) != shape.repeated:
                    return False
            for c in shape.contains:
                counted = value[c.start :]
                if sum(self.admits(c.handle, v, wide, sure) for v in counted) < c.low:
                    return False
                if c.high is not None and sum(self.admits(c.handle, v, not wide, not sure) for v in counted) > c.high:
                    return False
            return all(self.admits(item_of(shape, i), v, wide, sure) for i, v in enumerate(value))
        if not mask & OBJECT or any(name not in value for name in shape.required) or len(value) < shape.min_properties:
            return False
        if shape.max_properties is not None and len(value) > shape.max_properties:
            return False
        for wanted in shape.existentials:
            if not any(
                self.in_class(name, keys, wide, sure) and self.admits(handle, v, wide, sure)
                for keys, handle in wanted
                for name, v in value.items()
            ):
                return False
        for keys, handle in shape.universals:
            members = [v for name, v in value.items() if self.in_class(name, keys, not wide, not sure)]
            if not all(self.admits(handle, v, wide, sure) for v in members):
                return False
        return all(self.admits(property_of(shape, name), v, wide, sure) for name, v in value.items())

    def _keys(self, values: Any) -> frozenset[Key]:
        """The keys of the values of a shape; the list is kept alive, so that its identity stays its own."""
        got = self._value_keys.get(id(values))
        if got is None:
            got = self._value_keys[id(values)] = values, frozenset(map(json_key, values))
        return got[1]

    def in_class(self, name: str, keys: KeyClass, wide: bool = False, sure: bool = False) -> bool:
        """Whether a property's name is in a class."""
        if keys.only is not None:
            return name == keys.only
        if name in keys.names:
            return False
        try:
            if any(matches(p, name) for p in keys.patterns):
                return False
            if keys.pattern is not None and not matches(keys.pattern, name):
                return False
        except UnicodeEncodeError:  # a lone surrogate, which no document spells
            return False
        return keys.key is None or self.admits(keys.key, name, wide, sure)

    def is_loose(self, handle: Handle) -> bool:
        """Whether a condition of a child was dropped."""
        return any(shape.loose for shape in self._alternatives(handle))

    def admits(self, handle: Handle, value: Any, wide: bool = False, sure: bool = False) -> bool:
        """Whether a child has a value."""
        for shape in self._alternatives(handle):
            if shape.free:
                return True
            if shape.values is not None and json_key(value) not in self._keys(shape.values):
                continue
            if self.accepts(value, shape, wide, sure):
                return True
        return False
