"""What a caller can choose about the JSON text: a choice narrows spellings, never values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from wfsa.errors import SchemaError

Whitespace = Literal["flexible", "compact", "python"]
PropertyOrder = Literal["declared", "any"]
UniqueItems = Literal["exact", "unchecked"]


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """How the document may be spelled.

    whitespace: "flexible" is any JSON whitespace before every lexeme, none at the end of the document;
    "compact" is none; "python" is what ``json.dumps`` writes, ``", "`` and ``": "``.
    property_order: "declared" takes the declared names in the order of the schema, each at most once, and other names
    anywhere after those; "any" takes every order, at a cost that doubles with each declared name of an object (a
    LimitError beyond about twelve).
    unique_items: "exact" enforces ``uniqueItems`` where the items can have few values, and refuses the schema
    elsewhere; "unchecked" ignores it, so that invalid documents can be written (the report lists it).
    """

    whitespace: Whitespace = "flexible"
    property_order: PropertyOrder = "declared"
    unique_items: UniqueItems = "exact"

    def __post_init__(self) -> None:
        if self.property_order not in get_args(PropertyOrder):
            known = ", ".join(get_args(PropertyOrder))
            raise SchemaError(f"unknown property order {self.property_order!r}, known are {known}; at $")
        if self.unique_items not in get_args(UniqueItems):
            known = ", ".join(get_args(UniqueItems))
            raise SchemaError(f"unknown choice {self.unique_items!r} for unique_items, known are {known}; at $")
        if self.whitespace not in get_args(Whitespace):
            known = ", ".join(get_args(Whitespace))
            raise SchemaError(f"unknown whitespace policy {self.whitespace!r}, known are {known}; at $")
