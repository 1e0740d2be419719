"""What in a schema usually costs, and what could be written instead: told from the schema alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

_MOST_PARTS: Final = 50  # of one schema


def advice(schema: Any, document: Any = None) -> Iterator[str]:
    """Of what stands at this place itself, not of what is inside of it.

    `document` is the whole schema, into which ``#/...`` leads; without it references lead nowhere.
    """
    if not isinstance(schema, dict):
        return
    for keyword in ("oneOf", "anyOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and len(branches) >= 4 and not _discriminated(branches, document):
            yield (
                f"these {len(branches)} branches of {keyword} share no discriminator: where each has one property with "
                "a const of its own, placed first, they part at once"
            )
    if isinstance(schema.get("oneOf"), list):
        yield "oneOf excludes what two branches take; where no value fits two, anyOf says the same and costs less"
    for keyword, many in (("maxLength", 1000), ("maxItems", 100), ("minLength", 1000), ("minItems", 100)):
        bound = schema.get(keyword)
        if isinstance(bound, int) and bound > many:
            yield f"{keyword}: {bound} is counted, one by one; without it nothing is"
    if isinstance(schema.get("pattern"), str) and len(schema["pattern"]) > 60:
        yield "a long pattern: a format, or parts of it as several properties, may say the same"
    names = schema.get("patternProperties")
    if isinstance(names, dict) and len(names) > 1:
        yield "names by several patterns are compared with each other; fixed names cost less"
    if schema.get("uniqueItems") is True:
        yield 'uniqueItems is checked while decoding (SchemaOptions(unique_items="unchecked") leaves it out)'


def _discriminated(branches: list[Any], document: Any) -> bool:
    """Has each object among them a property in common with the others, whose values are its own?

    Also where that cannot be told: there are no two objects, or a reference leads where nothing is looked up.
    """
    try:
        parts = [list(_parts(branch, document)) for branch in branches]
    except LookupError:
        return True
    objects = [_properties(some, document) for some in parts if not _is_no_object(some)]
    if sum(map(bool, objects)) < 2:
        return True
    return any(_disjoint([properties.get(name, set()) for properties in objects]) for name in objects[0])


def _disjoint(values: list[set[Any]]) -> bool:
    return all(values) and sum(map(len, values)) == len(set().union(*values))


def _is_no_object(parts: list[dict[str, Any]]) -> bool:
    for part in parts:
        kinds = part.get("type", "object")
        if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
            return True
        values = [part["const"]] if "const" in part else part.get("enum")
        if isinstance(values, list) and not any(isinstance(value, dict) for value in values):
            return True
    return False


def _properties(parts: list[dict[str, Any]], document: Any) -> dict[str, set[Any]]:
    """The properties that a branch declares, and the values of each; none where it may have any."""
    found: dict[str, set[Any]] = {}
    for part in parts:
        declared = part.get("properties")
        for name, child in declared.items() if isinstance(declared, dict) else ():
            values, known = _values(child, document), found.get(name, set())
            found[name] = known & values if known and values else known or values
    return found


def _values(schema: Any, document: Any) -> set[Any]:
    found: set[Any] = set()
    try:
        for part in _parts(schema, document):
            values = [part["const"]] if "const" in part else part.get("enum")
            keys = set(map(_key, values)) if isinstance(values, list) else set()
            found = found & keys if found and keys else found or keys
    except LookupError:
        return set()
    return found


def _parts(schema: Any, document: Any) -> Iterator[dict[str, Any]]:
    """A schema and what holds beside it: where its ``$ref`` leads, and ``allOf``."""
    todo, seen = [schema], 0
    while todo:
        one = todo.pop()
        if not isinstance(one, dict):
            continue
        seen += 1
        if seen > _MOST_PARTS:  # a circle, or nearly
            raise LookupError
        yield one
        if isinstance(one.get("allOf"), list):
            todo += one["allOf"]
        if "$ref" in one:
            todo.append(_at(one["$ref"], document))


def _at(reference: Any, document: Any) -> Any:
    """Where a JSON pointer into the document leads; LookupError for what is none, or leads nowhere."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise LookupError
    found = document
    for step in unquote(reference).split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and step.isdecimal():
            found = found[int(step)]
        elif isinstance(found, dict):
            found = found[step]
        else:
            raise LookupError
    if not isinstance(found, (dict, bool)):
        raise LookupError
    return found


def _key(value: Any) -> Any:
    """Equal for equal JSON values, but for numbers inside of arrays and objects that are spelled in two ways."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, sort_keys=True, default=str)
    return isinstance(value, bool), value
