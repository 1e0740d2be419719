"""What a caller can choose about the JSON text: a choice narrows spellings, never values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from wfsa.errors import SchemaError

Whitespace = Literal["flexible", "compact", "python"]
UniqueItems = Literal["exact", "unchecked"]
Formats = Literal["assert", "annotate"]


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """How the document may be spelled.

    whitespace: "flexible" is any JSON whitespace before every lexeme, none at the end of the document;
    "compact" is none; "python" is what ``json.dumps`` writes, ``", "`` and ``": "``.
    unique_items: "exact" enforces ``uniqueItems`` where the items can have few values, and refuses the schema
    elsewhere; "unchecked" ignores it, so that invalid documents can be written (the report lists it).
    formats: "assert" enforces ``format`` where its name is known; "annotate" ignores it, as the specification has it
    by default (the report lists it).
    """

    whitespace: Whitespace = "flexible"
    unique_items: UniqueItems = "exact"
    formats: Formats = "assert"

    def __post_init__(self) -> None:
        for name, choices in (("unique_items", UniqueItems), ("whitespace", Whitespace), ("formats", Formats)):
            value, known = getattr(self, name), get_args(choices)
            if value not in known:
                raise SchemaError(f"unknown choice {value!r} for {name}, known are {', '.join(known)}; at $")
