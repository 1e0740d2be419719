"""JSON types as bits of a mask.  Numbers are two types, since ``integer`` takes only some of them."""

from __future__ import annotations

from typing import Any

NULL, BOOLEAN, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << i for i in range(7))  # FRACTION: numbers not whole
NUMBER = INTEGER | FRACTION
SCALARS = NULL | BOOLEAN | NUMBER | STRING
ANY_TYPE = SCALARS | ARRAY | OBJECT
KINDS = (NUMBER, STRING, ARRAY, OBJECT)  # types whose values have conditions, in the order of a shape's domains


def type_of(value: Any) -> int:
    """Return the types of a JSON value, as a mask."""
    if value is None or isinstance(value, bool):
        return NULL if value is None else BOOLEAN
    if isinstance(value, str):
        return STRING
    return OBJECT if isinstance(value, dict) else ARRAY if isinstance(value, list) else NUMBER
