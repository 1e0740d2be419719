"""Keyword arguments that a compile function does not have: which, and where they belong.

``compile_json_schema(schema, vocab, whitespace="compact")`` names a field of another options class, and
``mod="lazy"`` is misspelt.  Python's own message would name the constructor of a dataclass that the caller never saw.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from wfsa.grammar.json_schema import SchemaOptions

_OF_SCHEMA = frozenset(field.name for field in fields(SchemaOptions))


def refuse_unknown(function: str, given: Iterable[str], known: Iterable[str], schema_options: bool = False) -> None:
    """TypeError if a name in `given` is not in `known`, the keywords of `function`.

    schema_options: has `function` an argument of this name?
    """
    names = [*known, *(["schema_options"] if schema_options else [])]
    for name in given:
        if name in names:
            continue
        if name in _OF_SCHEMA:
            if schema_options:
                remedy = f"{name} is a field of SchemaOptions: give schema_options=SchemaOptions({name}=...)"
            else:
                remedy = f"{name} is a field of SchemaOptions, which is for JSON Schemas"
        else:
            near = get_close_matches(name, names, 1)
            remedy = f"is {near[0]} meant?" if near else f"it takes {', '.join(sorted(names))}"
        raise TypeError(f"{function}() has no argument {name!r}: {remedy}")


def known_fields(options: Any) -> tuple[str, ...]:
    """The fields of an options class."""
    return tuple(field.name for field in fields(options))
