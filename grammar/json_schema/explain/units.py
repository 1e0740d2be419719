"""The smallest parts of a schema object that mean something by themselves.

Most keywords do.  Some are read beside others: ``additionalProperties`` needs the names of ``properties``, ``then`` its
``if``.  A unit is a keyword together with as little of the others as that takes: of ``properties`` the names, with
nothing asked of their values.  A value satisfies a schema exactly if it satisfies all of its units.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..read.keyword_table import KEYWORDS


def units(schema: dict[str, Any], draft: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(keyword, the part of `schema` that it takes), for all keywords that say something in this draft."""
    readers = KEYWORDS.readers[draft]
    if "$ref" in schema and draft <= 7:
        yield "$ref", {"$ref": schema["$ref"]}
        return
    for keyword, value in schema.items():
        row = KEYWORDS.rows.get(keyword)
        if row is None or keyword not in readers or row.role == "location" or (row.rest_of and value is True):
            continue
        if row.is_last:
            yield keyword, schema
            continue
        named = {word: _emptied(schema[word]) for word in row.rest_of if isinstance(schema.get(word), (dict, list))}
        # What has a reader of its own is a unit of its own; draft 4's true and false are none.
        read_too = {word: schema[word] for word in row.reads_with
                    if word in schema and (word not in readers or isinstance(schema[word], bool))}  # fmt: skip
        yield keyword, {**named, keyword: value, **read_too}


def _emptied(holder: Any) -> Any:
    """The names or positions of a holder of schemas, with nothing asked of their values."""
    return dict.fromkeys(holder, True) if isinstance(holder, dict) else [True] * len(holder)
