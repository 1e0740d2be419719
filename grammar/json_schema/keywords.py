"""Reading one schema object, keyword by keyword, into a `Shape`.

Input: the dict, its path.  Output: the shape, and the ``$ref`` and ``anyOf`` found beside it: they need other schemas,
so the lowering follows them.
Each keyword has one small reader ``(found, shape, value, schema)`` in a table per draft; what is in no table is an
annotation and is skipped.  A keyword that asserts something and cannot be lowered yet is in `LATER`: it is refused,
unless its value is vacuous (``uniqueItems: false``) or ``type`` excludes the type that it speaks about.

Nothing is checked twice, and nothing is built for a keyword at its default.  Children are stored as handles, unread.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

from wfsa.errors import GrammarError, LimitError, SchemaError
from wfsa.grammar.json_schema.document import Document, segment
from wfsa.grammar.json_schema.finite import is_json, json_key
from wfsa.grammar.json_schema.formats import format_language
from wfsa.grammar.json_schema.intervals import MAX_DIGITS, exact, n_digits
from wfsa.grammar.json_schema.shape import (
    ANY_TYPE,
    ARRAY,
    BOOLEAN,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Handle,
    Shape,
)
from wfsa.grammar.json_schema.spelling import pattern_language

TYPES = {
    "string": STRING, "object": OBJECT, "integer": INTEGER, "number": NUMBER, "array": ARRAY, "boolean": BOOLEAN,
    "null": NULL,
}  # fmt: skip

Keyword = Callable[["Found", Shape, Any, dict[str, Any]], None]


class Found:
    """What one schema object holds besides its shape."""

    __slots__ = ("any_of", "document", "later", "ref")

    def __init__(self, document: Document) -> None:
        self.document = document
        self.ref: str | None = None
        self.any_of: list[Any] | None = None
        self.later: list[tuple[str, int]] | None = None


def shown(value: Any) -> str:
    """A value in a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more than 4,300 digits, or very deep
        return "a value too large to show"
    return text if len(text) <= 80 else text[:77] + "..."


def fail(shape: Shape, keyword: str, what: str) -> NoReturn:
    raise SchemaError(f"{what} at {shape.path}{segment(keyword)}")


def _number(shape: Shape, keyword: str, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        fail(shape, keyword, f"{keyword} must be a number, not {shown(value)}")
    number = exact(value)
    if number is None:
        fail(shape, keyword, f"{keyword} must be a finite number, not {shown(value)}")
    if n_digits(number) > MAX_DIGITS:
        raise LimitError(
            f"a bound of {n_digits(number)} digits, the limit is {MAX_DIGITS}; use a bound nearer to zero at "
            f"{shape.path}{segment(keyword)}"
        )
    return number


def _count(shape: Shape, keyword: str, value: Any) -> int:
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, (float, Decimal)) and 0 <= value < 1 << 62 and value == int(value):
        return int(value)
    fail(shape, keyword, f"{keyword} must be a whole number that is not negative, not {shown(value)}")


# ---- any type ----------------------------------------------------------------------------------------------------


def _type(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, str):
        mask = TYPES.get(value, 0)
        if not mask:
            fail(shape, "type", f"unknown type {shown(value)}")
    elif isinstance(value, list) and value:
        mask = 0
        for name in value:
            bit = TYPES.get(name, 0) if isinstance(name, str) else 0
            if not bit:
                fail(shape, "type", f"unknown type {shown(name)}")
            mask |= bit
    else:
        fail(shape, "type", f"type must be a type's name or a list of them, not {shown(value)}")
    shape.mask &= mask


def _enum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, list):
        fail(shape, "enum", f"enum must be a list, not {shown(value)}")
    if not is_json(value):
        fail(shape, "enum", "enum holds something that is no JSON value")
    _values(shape, value)


def _const(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not is_json(value):
        fail(shape, "const", f"{shown(value)} is no JSON value")
    _values(shape, [value])


def _values(shape: Shape, values: list[Any]) -> None:
    if shape.values is not None:
        keys = {json_key(v) for v in values}
        values = [v for v in shape.values if json_key(v) in keys]
    shape.values = values


def _any_of(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, list) or not value:
        fail(shape, "anyOf", f"anyOf must be a list of schemas that is not empty, not {shown(value)}")
    found.any_of = value


def _ref(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, str):
        fail(shape, "$ref", f"$ref must be a string, not {shown(value)}")
    found.ref = value


def _identifier(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, str) and not (found.document.draft <= 7 and "$ref" in schema):
        found.document.enter(schema, shape.path, value)


# ---- numbers -----------------------------------------------------------------------------------------------------


def _raise_low(shape: Shape, bound: Decimal, is_open: bool) -> None:
    if shape.low is None or bound > shape.low or (bound == shape.low and is_open):
        shape.low, shape.low_open = bound, is_open


def _lower_high(shape: Shape, bound: Decimal, is_open: bool) -> None:
    if shape.high is None or bound < shape.high or (bound == shape.high and is_open):
        shape.high, shape.high_open = bound, is_open


def _minimum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    is_open = found.document.draft <= 4 and schema.get("exclusiveMinimum") is True
    _raise_low(shape, _number(shape, "minimum", value), is_open)


def _maximum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    is_open = found.document.draft <= 4 and schema.get("exclusiveMaximum") is True
    _lower_high(shape, _number(shape, "maximum", value), is_open)


def _exclusive_minimum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, bool) and found.document.draft <= 4:
        return  # read with `minimum`
    _raise_low(shape, _number(shape, "exclusiveMinimum", value), True)


def _exclusive_maximum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, bool) and found.document.draft <= 4:
        return
    _lower_high(shape, _number(shape, "exclusiveMaximum", value), True)


# ---- strings -----------------------------------------------------------------------------------------------------


def _min_length(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    shape.min_length = _count(shape, "minLength", value)


def _max_length(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    shape.max_length = _count(shape, "maxLength", value)


def _pattern(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, str):
        fail(shape, "pattern", f"pattern must be a string, not {shown(value)}")
    try:
        pattern_language(value)
    except GrammarError as err:
        raise SchemaError(f"{err} at {shape.path}.pattern") from None
    shape.patterns = (*shape.patterns, value)


def _format(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, str):
        fail(shape, "format", f"format must be a string, not {shown(value)}")
    language = format_language(value)
    if language is not None:
        shape.formats = (*shape.formats, value)


# ---- arrays ------------------------------------------------------------------------------------------------------


def _handle(shape: Shape, keyword: str, value: Any, path: str) -> Handle:
    if not isinstance(value, (dict, bool)):
        fail(shape, keyword, f"a schema must be an object or a boolean, not {shown(value)}")
    return value, path


def _tuple_items(shape: Shape, keyword: str, value: list[Any]) -> None:
    path = f"{shape.path}.{keyword}"
    shape.prefix = tuple(_handle(shape, keyword, v, f"{path}[{i}]") for i, v in enumerate(value))


def _items(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, list):  # the form of the drafts up to 2019-09
        _tuple_items(shape, "items", value)
        if "additionalItems" in schema:
            rest = schema["additionalItems"]
            shape.rest = _handle(shape, "additionalItems", rest, shape.path + ".additionalItems")
    else:
        shape.rest = _handle(shape, "items", value, shape.path + ".items")


def _prefix_items(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, list):
        fail(shape, "prefixItems", f"prefixItems must be a list of schemas, not {shown(value)}")
    _tuple_items(shape, "prefixItems", value)


def _min_items(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    shape.min_items = _count(shape, "minItems", value)


def _max_items(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    shape.max_items = _count(shape, "maxItems", value)


# ---- objects -----------------------------------------------------------------------------------------------------


def _properties(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, dict):
        fail(shape, "properties", f"properties must be an object, not {shown(value)}")
    base = shape.path + ".properties"
    out: dict[str, Handle] = {}
    for name, child in value.items():
        if not isinstance(child, (dict, bool)) or not isinstance(name, str):
            what = f"the schema of property {shown(name)} must be an object or a boolean, not {shown(child)}"
            fail(shape, "properties", what)
        out[name] = child, f"{base}.{name}" if name.isidentifier() else base + segment(name)
    shape.properties = out


def _additional_properties(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if value is not True:
        shape.additional = _handle(shape, "additionalProperties", value, shape.path + ".additionalProperties")


def _required(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        fail(shape, "required", f"required must be a list of names, not {shown(value)}")
    shape.required = tuple(value)


# ---- what waits for the algebra of shapes ------------------------------------------------------------------------

# keyword -> (types it speaks about, is this value vacuous)
Vacuous = Callable[[Any, dict[str, Any]], bool]


def _never(value: Any, schema: dict[str, Any]) -> bool:
    return False


def _if_empty(value: Any, schema: dict[str, Any]) -> bool:
    return isinstance(value, dict) and not value


def _if_anything(value: Any, schema: dict[str, Any]) -> bool:
    return value is True or (isinstance(value, dict) and not value)


LATER: dict[str, tuple[int, Vacuous]] = {
    "allOf": (ANY_TYPE, _never),
    "oneOf": (ANY_TYPE, _never),
    "not": (ANY_TYPE, lambda value, schema: value is False),
    "if": (ANY_TYPE, lambda value, schema: "then" not in schema and "else" not in schema),
    "$dynamicRef": (ANY_TYPE, _never),
    "$recursiveRef": (ANY_TYPE, _never),
    "multipleOf": (NUMBER, _never),
    "contains": (ARRAY, _never),
    "uniqueItems": (ARRAY, lambda value, schema: value is False),
    "unevaluatedItems": (ARRAY, _if_anything),
    "patternProperties": (OBJECT, _if_empty),
    "propertyNames": (OBJECT, _if_anything),
    "minProperties": (OBJECT, lambda value, schema: type(value) is int and value == 0),
    "maxProperties": (OBJECT, _never),
    "dependencies": (OBJECT, _if_empty),
    "dependentRequired": (OBJECT, _if_empty),
    "dependentSchemas": (OBJECT, _if_empty),
    "unevaluatedProperties": (OBJECT, _if_anything),
}


def _later(keyword: str) -> Keyword:
    bits, is_vacuous = LATER[keyword]

    def note(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
        if not is_vacuous(value, schema):
            found.later = [*(found.later or ()), (keyword, bits)]

    return note


_BASE: dict[str, Keyword] = {
    "type": _type, "enum": _enum, "anyOf": _any_of, "$ref": _ref,
    "minimum": _minimum, "maximum": _maximum,
    "exclusiveMinimum": _exclusive_minimum, "exclusiveMaximum": _exclusive_maximum,
    "minLength": _min_length, "maxLength": _max_length, "pattern": _pattern, "format": _format,
    "items": _items, "minItems": _min_items, "maxItems": _max_items,
    "properties": _properties, "additionalProperties": _additional_properties, "required": _required,
    **{k: _later(k) for k in (
        "allOf", "oneOf", "not", "multipleOf", "uniqueItems", "patternProperties", "minProperties", "maxProperties",
        "dependencies",
    )},
}  # fmt: skip

_SINCE_6: dict[str, Keyword] = {
    "$id": _identifier, "const": _const, "contains": _later("contains"), "propertyNames": _later("propertyNames"),
}
_SINCE_2019: dict[str, Keyword] = {k: _later(k) for k in (
    "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties",
)}  # fmt: skip

_DRAFT_6 = {**_BASE, **_SINCE_6}
_DRAFT_7 = {**_DRAFT_6, "if": _later("if")}
_DRAFT_2019 = {**_DRAFT_7, **_SINCE_2019, "$recursiveRef": _later("$recursiveRef")}
# What no ``$schema`` declares is read as draft 2020-12; the list form of `items` has only one meaning and is taken too.
_DRAFT_2020 = {**_DRAFT_7, **_SINCE_2019, "prefixItems": _prefix_items, "$dynamicRef": _later("$dynamicRef")}
READERS: dict[int, dict[str, Keyword]] = {
    3: {**_BASE, "id": _identifier}, 4: {**_BASE, "id": _identifier}, 6: _DRAFT_6, 7: _DRAFT_7, 2019: _DRAFT_2019,
    2020: _DRAFT_2020,
}  # fmt: skip


def read_keywords(schema: dict[str, Any], path: str, document: Document) -> tuple[Shape, Found]:
    """The shape of one schema object, and what else it refers to."""
    readers = READERS[document.draft]
    shape, found = Shape(path), Found(document)
    if "$ref" in schema and document.draft <= 7:  # everything beside it is ignored in these drafts
        _ref(found, shape, schema["$ref"], schema)
        return shape, found
    for keyword, value in schema.items():
        read = readers.get(keyword)
        if read is not None:
            read(found, shape, value, schema)
    plain = shape.__dict__
    shape.free = len(plain) == 1  # only the path
    if found.later is not None:
        for keyword, bits in found.later:
            if shape.mask & bits:
                fail(shape, keyword, f"the keyword {keyword!r} cannot be enforced yet; remove it, or write it out,")
    return shape, found
