"""Things that are a schema in another form: JSON text, pydantic models, dataclasses, TypedDicts.

Python types are the part of :mod:`.python_types`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, NoReturn

from wfsa.errors import SchemaError

from ...boundary import Boundary
from ...json_text import read_json
from ..options import SchemaOptions
from .python_types import is_type, type_schema


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """What a constraint was made from: the schema as data and the options, for messages."""

    schema: Any
    options: SchemaOptions
    tools: bool = False  # is it the union of calls that :mod:`..tools` makes


@Boundary(SchemaError)
def schema_of(source: Any) -> Any:
    """The schema (dict or bool) that `source` stands for."""
    if isinstance(source, (str, bytes, bytearray)):
        return _parse(source)
    if is_type(source):
        return type_schema(source)
    raise SchemaError(f"a schema must be an object, a boolean or JSON text, not {type(source).__name__}; at $")


def _parse(text: str | bytes | bytearray) -> Any:
    try:
        schema = read_json(text, _no_constant)
    except SchemaError:
        raise
    except ValueError as err:
        raise SchemaError(f"the schema is not JSON: {err}; at $") from None
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a schema must be an object or a boolean, not {type(schema).__name__}; at $")
    return schema


def _no_constant(name: str) -> NoReturn:
    raise SchemaError(f"the schema is not JSON: {name} is no JSON value; at $")


# ---- sources as text, for what is saved ------------------------------------------------------------------------------

_KEPT = tuple(f.name for f in fields(SchemaOptions) if f.name != "registry")


def to_text(source: SchemaSource) -> str | None:
    """A source as JSON text, with the documents of a registry that is a mapping of ours; None if it is none.

    Bounds that only a Decimal can hold are rounded: the text is for messages.
    """
    options = {name: getattr(source.options, name) for name in _KEPT}
    documents = getattr(source.options.registry, "documents", {})
    kept = {"schema": source.schema, "options": options, "tools": source.tools, "documents": documents}
    try:
        return json.dumps(kept, default=_rounded)
    except (ValueError, TypeError, RecursionError):
        return None


def _rounded(value: Any) -> Any:
    if not isinstance(value, Decimal):
        raise TypeError(f"{type(value).__name__} is no JSON")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a number too large to write")
    return int(value) if value == value.to_integral_value() else number


def from_text(text: str) -> SchemaSource:
    """The inverse of `to_text`; ValueError, TypeError or SchemaError if it cannot be."""
    kept = json.loads(text)
    if not isinstance(kept, dict) or not isinstance(kept.get("options"), dict):
        raise ValueError("no source of a constraint")
    if not isinstance(kept.get("schema"), (dict, bool)) or not isinstance(kept.get("documents"), dict):
        raise ValueError("no schema")
    options = SchemaOptions(**kept["options"], registry=kept["documents"] or None)
    return SchemaSource(kept["schema"], options, kept.get("tools") is True)
