"""The smallest parts of a schema object that mean something by themselves.

Most keywords do.  Some are read beside others: ``additionalProperties`` needs the names of ``properties``, ``then`` its
``if``.  A unit is a keyword together with as little of the others as that takes: of ``properties`` the names, with
nothing asked of their values.  A value satisfies a schema exactly if it satisfies all of its units.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .keywords import READERS

_BESIDE = {  # keyword -> what it is read with, unchanged
    "contains": ("minContains", "maxContains"), "if": ("then", "else"), "minimum": ("exclusiveMinimum",),
    "maximum": ("exclusiveMaximum",),
}  # fmt: skip
_REST = ("additionalProperties", "additionalItems")
_WHOLE = ("unevaluatedItems", "unevaluatedProperties")  # they depend on everything beside them


def units(schema: dict[str, Any], draft: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(keyword, the part of `schema` that it takes), for all keywords that say something in this draft."""
    readers = READERS[draft]
    if "$ref" in schema and draft <= 7:
        yield "$ref", {"$ref": schema["$ref"]}
        return
    for keyword, value in schema.items():
        if keyword not in readers or keyword in ("id", "$id") or (keyword in _REST and value is True):
            continue
        part = {keyword: value}
        if keyword in _WHOLE:
            part = schema
        elif keyword == "additionalProperties":
            part = {word: dict.fromkeys(schema[word], True) for word in ("properties", "patternProperties")
                    if isinstance(schema.get(word), dict)} | part  # fmt: skip
        elif keyword == "items" and isinstance(value, list):
            part |= {"additionalItems": schema["additionalItems"]} if "additionalItems" in schema else {}
        elif keyword == "items" and isinstance(schema.get("prefixItems"), list):
            part["prefixItems"] = [True] * len(schema["prefixItems"])
        elif keyword in ("minimum", "maximum") and draft > 4:
            pass
        else:
            part |= {word: schema[word] for word in _BESIDE.get(keyword, ()) if word in schema}
        yield keyword, part
