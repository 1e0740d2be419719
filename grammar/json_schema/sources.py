"""Things that are a schema in another form: JSON text, pydantic models, dataclasses, TypedDicts.

Python types are turned into a schema by pydantic, if it is installed; wfsa does not depend on it.
"""

from __future__ import annotations

import json
import types
from decimal import Decimal
from typing import Any, NoReturn

from wfsa.errors import SchemaError


def schema_of(source: Any) -> Any:
    """The schema (dict or bool) that `source` stands for."""
    if isinstance(source, (str, bytes, bytearray)):
        return _parse(source)
    kinds = (type, types.UnionType)
    if isinstance(source, kinds) or hasattr(source, "json_schema") or hasattr(source, "__origin__"):
        return _through_pydantic(source)
    raise SchemaError(f"a schema must be an object, a boolean or JSON text, not {type(source).__name__}; at $")


def _parse(text: str | bytes | bytearray) -> Any:
    try:
        schema = json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except RecursionError:
        raise SchemaError("the schema nests too deep for the JSON parser at $") from None
    except ValueError as err:
        if isinstance(err, SchemaError):
            raise
        raise SchemaError(f"the schema is not JSON: {err}; at $") from None
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a schema must be an object or a boolean, not {type(schema).__name__}; at $")
    return schema


def _no_constant(name: str) -> NoReturn:
    raise SchemaError(f"the schema is not JSON: {name} is no JSON value; at $")


def _through_pydantic(source: Any) -> Any:
    try:
        from pydantic import TypeAdapter
    except ImportError:
        raise TypeError(
            f"{source!r} is turned into a schema by pydantic, which is not installed: pip install pydantic"
        ) from None
    try:
        if isinstance(source, TypeAdapter):
            return source.json_schema()
        return TypeAdapter(source).json_schema()
    except Exception as err:  # pydantic's errors are many, and a model can raise its own
        raise SchemaError(f"pydantic makes no schema of {source!r}: {err}; at $") from err
