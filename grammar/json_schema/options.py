"""What a caller can choose about the JSON text: a choice narrows spellings, never values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from wfsa.errors import SchemaError

Whitespace = Literal["flexible", "compact", "python"]
UniqueItems = Literal["exact", "unchecked"]


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """How the document may be spelled.

    whitespace: "flexible" is any JSON whitespace before every lexeme, none at the end of the document;
    "compact" is none; "python" is what ``json.dumps`` writes, ``", "`` and ``": "``.
    unique_items: "exact" enforces ``uniqueItems`` where the items can have few values, and refuses the schema
    elsewhere; "unchecked" ignores it, so that invalid documents can be written (the report lists it).
    """

    whitespace: Whitespace = "flexible"
    unique_items: UniqueItems = "exact"

    def __post_init__(self) -> None:
        if self.unique_items not in get_args(UniqueItems):
            known = ", ".join(get_args(UniqueItems))
            raise SchemaError(f"unknown choice {self.unique_items!r} for unique_items, known are {known}; at $")
        if self.whitespace not in get_args(Whitespace):
            known = ", ".join(get_args(Whitespace))
            raise SchemaError(f"unknown whitespace policy {self.whitespace!r}, known are {known}; at $")
