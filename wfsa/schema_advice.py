"""What in a schema usually costs, and what could be written instead: told from the schema alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def advice(schema: Any) -> Iterator[str]:
    """Of what stands at this place itself, not of what is inside of it."""
    if not isinstance(schema, dict):
        return
    for keyword in ("oneOf", "anyOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and len(branches) >= 4 and not _discriminated(branches):
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


def _discriminated(branches: list[Any]) -> bool:
    """Has each object among them a property in common with the others, whose values are its own?"""
    objects = [branch["properties"] for branch in branches if isinstance(branch, dict) and
               isinstance(branch.get("properties"), dict)]  # fmt: skip
    if len(objects) < len(branches):
        return len(objects) < 2
    for name in objects[0]:
        values = [repr(one[name].get("const", one[name].get("enum")))
                  for one in objects if isinstance(one.get(name), dict)]  # fmt: skip
        if len(values) == len(objects) == len(set(values)) and "None" not in values:
            return True
    return False
