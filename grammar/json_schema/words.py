"""A schema's keywords in words, and its places as JSON pointers: ``/properties/age/maximum: at most 120``.

One keyword gives one short phrase that is read after its pointer and a colon.  It says what the keyword asks for; what
a document did wrong is added by whoever knows the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

MAX_SHOWN = 6  # values of an enum, names of a list
_MAX_TEXT = 40  # characters of one value
_ARTICLES = {"integer": "an integer", "object": "an object", "array": "an array", "null": "null"}


def value_text(value: Any) -> str:
    """A JSON value, cut if it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = "a value too large to show"
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def list_text(values: Iterable[Any]) -> str:
    """Values with commas between them, the first few if they are many."""
    listed = list(values)
    text = ", ".join(map(value_text, listed[:MAX_SHOWN]))
    return text if len(listed) <= MAX_SHOWN else f"{text}, … ({len(listed)} values)"


def keyword_text(keyword: str, schema: dict[str, Any]) -> str:
    """What `keyword` of `schema` asks for."""
    value = schema[keyword]
    if keyword == "type":
        names = value if isinstance(value, list) else [value]
        return " or ".join(_ARTICLES.get(name, f"a {name}") for name in names)
    if keyword == "enum" and isinstance(value, list):
        return f"one of {list_text(value)}" if value else "one of no values"
    if keyword == "required" and isinstance(value, list):
        return f"{list_text(value)} must be there"
    if keyword in ("minimum", "maximum") and schema.get("exclusive" + keyword.capitalize()) is True:
        return f"{'above' if keyword == 'minimum' else 'below'} {value_text(value)}"
    if keyword in _COUNTED:
        bound, what = _COUNTED[keyword]
        return f"{bound} {value_text(value)} {what if value == 1 else _PLURALS[what]}"
    if keyword in _SIMPLE:
        return _SIMPLE[keyword].format(_pattern_text(value) if keyword == "pattern" else value_text(value))
    if keyword == "format":
        return f"a string of the format {value}"
    if keyword == "uniqueItems":
        return "no item twice"
    if keyword == "contains":
        return _contains_text(schema)
    if keyword in ("additionalProperties", "unevaluatedProperties"):
        return "no other properties" if value is False else "what all other properties have to fit"
    if keyword in ("items", "additionalItems", "unevaluatedItems"):
        return "no further items" if value is False else "what the items have to fit"
    return _OTHERS.get(keyword, keyword)


_COUNTED = {
    "minLength": ("at least", "character"), "maxLength": ("at most", "character"),
    "minItems": ("at least", "item"), "maxItems": ("at most", "item"),
    "minProperties": ("at least", "property"), "maxProperties": ("at most", "property"),
}  # fmt: skip
_PLURALS = {"character": "characters", "item": "items", "property": "properties"}
_SIMPLE = {
    "const": "only {}", "minimum": "at least {}", "maximum": "at most {}", "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}", "multipleOf": "a multiple of {}", "pattern": "a match of {}",
}  # fmt: skip
_OTHERS = {
    "not": "what fits it is refused", "anyOf": "at least one of the branches has to fit",
    "oneOf": "exactly one of the branches has to fit", "allOf": "all of the branches have to fit",
    "if": "where `if` fits `then` has to, elsewhere `else`", "$ref": "what it refers to",
    "properties": "what the properties have to fit", "patternProperties": "what properties of such names have to fit",
    "propertyNames": "what the names have to fit", "prefixItems": "what the first items have to fit",
    "dependentRequired": "which names ask for others", "dependencies": "which names ask for more",
    "dependentSchemas": "which names ask for more",
}  # fmt: skip


def _pattern_text(pattern: str) -> str:
    return f"/{pattern}/" if len(pattern) <= 2 * _MAX_TEXT else f"/{pattern[: 2 * _MAX_TEXT]}…/"


def _contains_text(schema: dict[str, Any]) -> str:
    low, high = schema.get("minContains", 1), schema.get("maxContains")
    counts = f"at least {low}" if high is None else f"{low} to {high}"
    return f"{counts} of the items must fit"
