"""Where in a schema object its subschemas stand.

Only there an identifier is an identifier, and a keyword a keyword: under ``enum``, ``default`` or an unknown word
everything is data, whatever it looks like.  The table is the same for all drafts; a keyword that a draft does not have
yet is read as a place for schemas all the same, since a reference may lead there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

ONE = frozenset((
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
))  # fmt: skip
LISTS = frozenset(("allOf", "anyOf", "items", "oneOf", "prefixItems"))
MAPS = frozenset((
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties",
))  # fmt: skip

Step = str | int


_STEP = re.compile(r'\.([^.\[(]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\(\d+\)')


def pointer_of(path: str, outside: Sequence[str] = ()) -> str:
    """The JSON pointer of a path: ``$.items["a b"][0]`` is ``/items/a b/0``.

    `outside` are the addresses of other documents: their places are shown as ``address#/pointer``.
    Other paths that do not begin at ``$`` stay as they are.
    ``(1)`` marks a copy of a resource under a dynamic scope, and is left out.
    """
    if not path.startswith(("$", *outside)):
        return path
    root = max((uri for uri in outside if path.startswith(uri)), key=len, default="")
    steps = []
    for found in _STEP.finditer(path, len(root) or 1):
        name, index, quoted = found.groups()
        if name is not None or index is not None or quoted is not None:
            step = json.loads(quoted) if quoted else name or index
            steps.append(step)
    return (root and root + "#") + pointer(steps)


def pointer(steps: Iterable[Step]) -> str:
    """The JSON pointer of steps from the root (RFC 6901): ``("items", "a/b", 0)`` is ``/items/a~1b/0``."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def subschemas(schema: dict[str, Any]) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Every subschema, with the steps that lead to it: ``("properties", "a")``, ``("anyOf", 0)``, ``("not",)``."""
    for keyword, value in schema.items():
        if isinstance(value, dict) and keyword in MAPS:
            for name, child in value.items():
                if isinstance(child, (dict, bool)) and isinstance(name, str):
                    yield (keyword, name), child
        elif isinstance(value, list) and keyword in LISTS:
            for i, child in enumerate(value):
                if isinstance(child, (dict, bool)):
                    yield (keyword, i), child
        elif isinstance(value, (dict, bool)) and keyword in ONE:
            yield (keyword,), value
