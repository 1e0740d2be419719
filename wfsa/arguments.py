"""Errors for keyword arguments that a compile function does not have, with the place where they belong.

``compile_json_schema(schema, vocab, whitespace="compact")`` names a field of another options class, and
``mod="lazy"`` is misspelt.  Python's own message would name the constructor of a dataclass that the caller never saw.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from wfsa.grammar.json_schema import SchemaOptions

_SCHEMA_FIELDS = frozenset(field.name for field in fields(SchemaOptions))


def refuse_unknown(function: str, names: Iterable[str], allowed: Iterable[str], schema_options: bool = False) -> None:
    """Raises TypeError if a name is not in `allowed`, the keywords of `function`.

    schema_options: whether `function` has an argument of this name.
    """
    allowed = [*allowed, *(["schema_options"] if schema_options else [])]
    for name in names:
        if name in allowed:
            continue
        if name in _SCHEMA_FIELDS:
            if schema_options:
                remedy = f"{name} is a field of SchemaOptions: give schema_options=SchemaOptions({name}=...)"
            else:
                remedy = f"{name} is a field of SchemaOptions, which is for JSON Schemas"
        else:
            near = get_close_matches(name, allowed, 1)
            remedy = f"the closest name is {near[0]}" if near else f"it takes {', '.join(sorted(allowed))}"
        raise TypeError(f"{function}() has no argument {name!r}: {remedy}")


def known_fields(options: Any) -> tuple[str, ...]:
    """Returns the names of the fields of an options class."""
    return tuple(field.name for field in fields(options))
