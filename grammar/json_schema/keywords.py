"""Reading one schema object, keyword by keyword, into a `Shape`.

Input: the dict, its path.  Output: the shape, and the ``$ref`` and the applicators (``anyOf``, ``not``, ...) found
beside it: they need other schemas, so :mod:`.alternatives` follows them.
Each keyword has one small reader ``(found, shape, value, schema)`` in a table per draft; what is in no table is an
annotation and is skipped.

Nothing is checked twice, and nothing is built for a keyword at its default.  Children are stored as handles, unread.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

from wfsa.errors import GrammarError, LimitError, SchemaError

from .contents import JSON, encoding_pattern, holds_json
from .document import Document, segment
from .finite import is_json, json_key
from .formats import format_name
from .intervals import MAX_DIGITS, exact, n_digits
from .misspelt import MEANT
from .shape import (
    ARRAY,
    BOOLEAN,
    INTEGER,
    NOT_SEEN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Compound,
    Contains,
    Handle,
    KeyClass,
    Keyed,
    Seen,
    Shape,
    Tracks,
)
from .spelling import pattern_language
from .widening import CAUGHT, Unenforceable

TYPES = {
    "string": STRING, "object": OBJECT, "integer": INTEGER, "number": NUMBER, "array": ARRAY, "boolean": BOOLEAN,
    "null": NULL,
}  # fmt: skip

Keyword = Callable[["Found", Shape, Any, dict[str, Any]], None]


class Found:
    """What one schema object holds besides its shape."""

    __slots__ = ("document", "draft", "lost_pattern", "parts", "ref", "tracks")

    def __init__(self, document: Document, draft: int, tracks: Tracks) -> None:
        self.document = document
        self.draft = draft
        self.tracks = tracks  # is it noted what the keywords evaluate
        self.ref: str | None = None
        self.lost_pattern = False  # is there a pattern of names that cannot be read
        self.parts: dict[str, Any] | None = None  # applicators in place, by keyword


def shown(value: Any) -> str:
    """A value in a message."""
    try:
        text = repr(value)
    except Exception:  # more than 4,300 digits, very deep, or an object of the caller
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
    number = exact(value) if isinstance(value, (float, Decimal)) else None
    if number is not None and 0 <= number < 1 << 62 and number == int(number):
        return int(number)
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


def _part(keyword: str, is_right: Callable[[Any], bool], what: str) -> Keyword:
    """A reader for an applicator: it is checked here and followed by :mod:`.alternatives`."""

    def note(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
        if not is_right(value):
            fail(shape, keyword, f"{keyword} must be {what}, not {shown(value)}")
        if found.parts is None:
            found.parts = {}
        found.parts[keyword] = value

    return note


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_LIST = "a list of schemas that is not empty"
_SCHEMA = "an object or a boolean"


def _condition(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    for word in ("if", "then", "else"):
        if word in schema and not _is_schema(schema[word]):
            fail(shape, word, f"a schema must be an object or a boolean, not {shown(schema[word])}")
    if "then" in schema or "else" in schema or found.tracks:
        if found.parts is None:
            found.parts = {}
        found.parts["if"] = value


def _ref(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, str):
        fail(shape, "$ref", f"$ref must be a string, not {shown(value)}")
    found.ref = value


def _dynamic_ref(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, str):
        fail(shape, "$dynamicRef", f"$dynamicRef must be a string, not {shown(value)}")
    if found.parts is None:
        found.parts = {}
    found.parts["$dynamicRef"] = value


def _identifier(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, str) and not (found.draft <= 7 and "$ref" in schema):
        found.document.enter(schema, shape.path, value)


# ---- numbers -----------------------------------------------------------------------------------------------------


def _raise_low(shape: Shape, bound: Decimal, is_open: bool) -> None:
    if shape.low is None or bound > shape.low or (bound == shape.low and is_open):
        shape.low, shape.low_open = bound, is_open


def _lower_high(shape: Shape, bound: Decimal, is_open: bool) -> None:
    if shape.high is None or bound < shape.high or (bound == shape.high and is_open):
        shape.high, shape.high_open = bound, is_open


def _minimum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    is_open = found.draft <= 4 and schema.get("exclusiveMinimum") is True
    _raise_low(shape, _number(shape, "minimum", value), is_open)


def _maximum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    is_open = found.draft <= 4 and schema.get("exclusiveMaximum") is True
    _lower_high(shape, _number(shape, "maximum", value), is_open)


def _exclusive_minimum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, bool) and found.draft <= 4:
        return  # read with `minimum`
    _raise_low(shape, _number(shape, "exclusiveMinimum", value), True)


def _exclusive_maximum(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, bool) and found.draft <= 4:
        return
    _lower_high(shape, _number(shape, "exclusiveMaximum", value), True)


def _multiple_of(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    number = _number(shape, "multipleOf", value)
    if number <= 0:
        fail(shape, "multipleOf", f"multipleOf must be above 0, not {shown(value)}")
    shape.multiples = (number,)


# ---- strings -----------------------------------------------------------------------------------------------------


def _min_length(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    shape.min_length = _count(shape, "minLength", value)


def _max_length(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    shape.max_length = _count(shape, "maxLength", value)


def _pattern(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    _checked_pattern(value, shape.path + ".pattern")
    shape.patterns = (*shape.patterns, value)


def _format(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, str):
        fail(shape, "format", f"format must be a string, not {shown(value)}")
    name = format_name(value, found.draft)
    if name is not None and found.document.options.formats == "assert":
        shape.formats = (*shape.formats, name)


def _content_encoding(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    pattern = encoding_pattern(value)
    if pattern is not None and found.document.options.formats == "assert":
        shape.patterns = (*shape.patterns, pattern)


def _content_media_type(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if holds_json(schema) and found.document.options.formats == "assert":
        if "contentEncoding" in schema:
            raise Unenforceable(f"{JSON} in {schema['contentEncoding']} cannot be enforced at {shape.path}")
        shape.formats = (*shape.formats, JSON)


# ---- arrays ------------------------------------------------------------------------------------------------------


def _handle(shape: Shape, keyword: str, value: Any, path: str) -> Handle:
    if not isinstance(value, (dict, bool)):
        raise SchemaError(f"a schema must be an object or a boolean, not {shown(value)} at {path}")
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


def _contains(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    handle = _handle(shape, "contains", value, shape.path + ".contains")
    low, high = 1, None
    if found.draft >= 2019:
        if "minContains" in schema:
            low = _count(shape, "minContains", schema["minContains"])
        if "maxContains" in schema:
            high = _count(shape, "maxContains", schema["maxContains"])
    if low or high is not None:
        shape.contains = (Contains(handle, low, high),)
    shape.seen = shape.seen._replace(contained=(handle,)) if found.draft >= 2020 else shape.seen


def _unique_items(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, bool):
        fail(shape, "uniqueItems", f"uniqueItems must be true or false, not {shown(value)}")
    if value and found.document.options.unique_items == "exact":
        shape.unique = True


# ---- objects -----------------------------------------------------------------------------------------------------


def _properties(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, dict):
        fail(shape, "properties", f"properties must be an object, not {shown(value)}")
    base = shape.path + ".properties"
    out: dict[str, Handle] = {}
    for name, child in value.items():
        if not isinstance(name, str):
            fail(shape, "properties", f"the name of a property must be a string, not {shown(name)}")
        if not isinstance(child, (dict, bool)):
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


def _pattern_properties(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    if not isinstance(value, dict):
        fail(shape, "patternProperties", f"patternProperties must be an object, not {shown(value)}")
    base = shape.path + ".patternProperties"
    universals: list[Keyed] = []
    for pattern, child in value.items():
        if not isinstance(pattern, str):
            fail(shape, "patternProperties", f"a pattern must be a string, not {shown(pattern)}")
        try:
            _checked_pattern(pattern, base + segment(pattern))
        except Unenforceable as err:
            found.document.widenings.add(shape.path, "patternProperties", err)
            found.lost_pattern = shape.loose = True
            continue
        handle = _handle(shape, "patternProperties", child, base + segment(pattern))
        universals.append((KeyClass(pattern=pattern), handle))
    shape.universals = (*shape.universals, *universals)


def _property_names(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    handle = _handle(shape, "propertyNames", value, shape.path + ".propertyNames")
    if value is not True:
        keys = KeyClass(key=Compound("not", (handle,)))
        shape.universals = (*shape.universals, (keys, (False, handle[1] if isinstance(handle, tuple) else shape.path)))


def _min_properties(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    shape.min_properties = _count(shape, "minProperties", value)


def _max_properties(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
    shape.max_properties = _count(shape, "maxProperties", value)


def _checked_pattern(value: Any, path: str) -> None:
    if not isinstance(value, str):
        raise SchemaError(f"a pattern must be a string, not {shown(value)} at {path}")
    try:
        pattern_language(value)
    except GrammarError as err:
        raise Unenforceable(f"{err} at {path}") from None


def _dependencies(keyword: str) -> Keyword:
    """``dependentRequired``, ``dependentSchemas``, and ``dependencies``, which is both."""

    def note(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
        if not isinstance(value, dict):
            fail(shape, keyword, f"{keyword} must be an object, not {shown(value)}")
        for name, asked in value.items():
            if not isinstance(name, str):
                fail(shape, keyword, f"a property's name must be a string, not {shown(name)}")
            names = _are_names(asked) and keyword != "dependentSchemas"
            if not names and not (_is_schema(asked) and keyword != "dependentRequired"):
                fail(shape, keyword, f"what {shown(name)} asks for must be names or a schema, not {shown(asked)}")
        if value:
            if found.parts is None:
                found.parts = {}
            found.parts[keyword] = value

    return note


UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


def _unevaluated(keyword: str) -> Keyword:
    def note(found: Found, shape: Shape, value: Any, schema: dict[str, Any]) -> None:
        if not _is_schema(value):
            fail(shape, keyword, f"a schema must be {_SCHEMA}, not {shown(value)}")
        if found.parts is None:
            found.parts = {}
        found.parts[keyword] = value

    return note


_BASE: dict[str, Keyword] = {
    "type": _type, "enum": _enum, "$ref": _ref,
    "allOf": _part("allOf", _are_schemas, _LIST), "anyOf": _part("anyOf", _are_schemas, _LIST),
    "oneOf": _part("oneOf", _are_schemas, _LIST), "not": _part("not", _is_schema, _SCHEMA),
    "minimum": _minimum, "maximum": _maximum, "multipleOf": _multiple_of,
    "exclusiveMinimum": _exclusive_minimum, "exclusiveMaximum": _exclusive_maximum,
    "minLength": _min_length, "maxLength": _max_length, "pattern": _pattern, "format": _format,
    "items": _items, "minItems": _min_items, "maxItems": _max_items, "uniqueItems": _unique_items,
    "properties": _properties, "additionalProperties": _additional_properties, "required": _required,
    "patternProperties": _pattern_properties, "minProperties": _min_properties, "maxProperties": _max_properties,
    "dependencies": _dependencies("dependencies"),
}  # fmt: skip

_DRAFT_6 = {
    **_BASE, "$id": _identifier, "const": _const, "contains": _contains, "propertyNames": _property_names,
}  # fmt: skip
_SINCE_7 = {**_DRAFT_6, "if": _condition}
_DRAFT_7 = {**_SINCE_7, "contentEncoding": _content_encoding, "contentMediaType": _content_media_type}
_SINCE_2019 = {
    **_SINCE_7,
    "dependentRequired": _dependencies("dependentRequired"), "dependentSchemas": _dependencies("dependentSchemas"),
    "unevaluatedItems": _unevaluated("unevaluatedItems"),
    "unevaluatedProperties": _unevaluated("unevaluatedProperties"),
}  # fmt: skip
_DRAFT_2019 = {**_SINCE_2019, "$recursiveRef": _dynamic_ref}
# What no ``$schema`` declares is read as draft 2020-12; the list form of `items` has only one meaning and is taken too.
_DRAFT_2020 = {**_SINCE_2019, "prefixItems": _prefix_items, "$dynamicRef": _dynamic_ref}
READERS: dict[int, dict[str, Keyword]] = {
    4: {**_BASE, "id": _identifier}, 6: _DRAFT_6, 7: _DRAFT_7, 2019: _DRAFT_2019, 2020: _DRAFT_2020,
}  # fmt: skip


def read_keywords(
    schema: dict[str, Any], path: str, document: Document, tracks: Tracks = Tracks.NONE
) -> tuple[Shape, Found]:
    """The shape of one schema object, and what else it refers to.

    What the keywords evaluate is noted if `tracks` says so, and if one of them is ``unevaluated...``.
    """
    draft = document.draft_at(path)
    readers = READERS[draft]
    if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
        tracks = Tracks.ALL if draft >= 2019 else tracks
    shape, found = Shape(path), Found(document, draft, tracks)
    if "$ref" in schema and draft <= 7:  # everything beside it is ignored in these drafts
        _ref(found, shape, schema["$ref"], schema)
        return shape, found
    for keyword, value in schema.items():
        read = readers.get(keyword)
        if read is None:
            if keyword not in MEANT:
                document.unknown.add(keyword, path)
            continue
        try:
            read(found, shape, value, schema)
        except CAUGHT as err:
            document.widenings.add(path, keyword, err)
            shape.loose = True
    if found.lost_pattern and "additional" in shape.__dict__:
        document.widenings.add(path, "additionalProperties", "a name may match a pattern that is not enforced")
        del shape.additional
    if shape.universals and "additional" in shape.__dict__:
        # All others: not named, and not matching a pattern either.
        patterns = frozenset(keys.pattern for keys, _ in shape.universals if keys.pattern is not None)
        if patterns:
            others = KeyClass(names=frozenset(shape.properties), patterns=patterns)
            shape.universals = (*shape.universals, (others, shape.additional))
            del shape.additional
    plain = shape.__dict__
    shape.free = len(plain) - ("seen" in plain) == 1  # only the path
    if tracks:
        _note_seen(shape, schema, draft)
    return shape, found


_OF_OBJECTS = frozenset((
    "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties",
    "maxProperties", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
))  # fmt: skip


def _note_seen(shape: Shape, schema: dict[str, Any], draft: int) -> None:
    """What this object's own keywords evaluate."""
    properties, patterns, items = schema.get("properties"), schema.get("patternProperties"), schema.get("items")
    tuple_items = items if isinstance(items, list) else schema.get("prefixItems") if draft >= 2020 else None
    seen = Seen(
        frozenset(properties) if isinstance(properties, dict) else frozenset(),
        frozenset(patterns) if isinstance(patterns, dict) else frozenset(),
        "additionalProperties" in schema,
        len(tuple_items) if isinstance(tuple_items, list) else 0,
        isinstance(items, (dict, bool)) or (isinstance(items, list) and "additionalItems" in schema),
        shape.seen.contained,
        not _OF_OBJECTS.isdisjoint(schema) or "object" in schema.get("type", ()),
    )
    if shape.loose and isinstance(patterns, dict):
        seen = seen._replace(all_names=True, patterns=frozenset())
    if seen != NOT_SEEN:
        shape.seen = seen
