"""What of a schema is enforced: one entry per keyword of the document, made on demand.

Compiling does not pay for the report: a `SchemaReport` keeps the schema and walks it when somebody asks.

    enforced     exactly the values that the keyword admits
    narrowed     no value that it forbids; some spellings of admitted values, or orders, are refused
    annotation   not an assertion here (titles, unknown words, formats that are not checked)
    widened      the caller asked that it be ignored (``SchemaOptions.unique_items``)

Nothing else is ever widened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from wfsa.grammar.json_schema.formats import NAMES, NARROWED
from wfsa.grammar.json_schema.keywords import READERS
from wfsa.grammar.json_schema.options import SchemaOptions

Status = Literal["enforced", "narrowed", "annotation", "widened"]


class ReportEntry(NamedTuple):
    """One keyword at one place."""

    pointer: str  # JSON pointer of the schema object; "" is the root
    keyword: str  # "" for what holds for every document
    status: Status
    note: str = ""


_CANONICAL = "strings only as json.dumps(ensure_ascii=False) spells them"
_NO_EXPONENT = "no exponents (0.001, not 1e-3), no -0"
_ONE_SCHEMA = (
    "additionalProperties", "items", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames",
    "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip
_SCHEMA_MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_BESIDE = {  # keywords that another one reads
    "then": "if", "else": "if", "minContains": "contains", "maxContains": "contains", "$recursiveAnchor": "",
}  # fmt: skip
_WHITESPACE = {
    "flexible": "any whitespace before every lexeme, none behind the document",
    "compact": "no whitespace",
    "python": 'one space after "," and ":", no other whitespace',
}


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """What of `schema` its grammar enforces.  Iterate over it, or take `entries`."""

    schema: Any = field(repr=False)
    options: SchemaOptions
    draft: int

    def __iter__(self) -> Iterator[ReportEntry]:
        return iter(self.entries)

    @property
    def entries(self) -> tuple[ReportEntry, ...]:
        out = [
            ReportEntry("", "", "narrowed", f"whitespace: {_WHITESPACE[self.options.whitespace]}"),
            ReportEntry("", "", "narrowed", "lone surrogates (\"\\ud800\") are refused"),
        ]
        todo: list[tuple[str, Any]] = [("", self.schema)]
        while todo:
            pointer, schema = todo.pop()
            if not isinstance(schema, dict):
                continue
            out += self._of(pointer, schema)
            todo += reversed(list(_children(pointer, schema)))
        return tuple(out)

    @property
    def narrowed(self) -> tuple[ReportEntry, ...]:
        return tuple(e for e in self.entries if e.status == "narrowed")

    def _of(self, pointer: str, schema: dict[str, Any]) -> Iterator[ReportEntry]:
        readers = READERS[self.draft]
        alone = "$ref" in schema and self.draft <= 7
        for keyword, value in schema.items():
            if keyword in ("$id", "id", "$defs", "definitions", "$schema", "$anchor"):
                continue
            if alone and keyword != "$ref":
                note = f"draft {self.draft} ignores what stands beside $ref"
                yield ReportEntry(pointer, keyword, "annotation", note)
            elif keyword == "additionalItems" and isinstance(schema.get("items"), list):
                yield ReportEntry(pointer, keyword, "enforced")
            elif keyword == "uniqueItems" and value is True and self.options.unique_items == "unchecked":
                yield ReportEntry(pointer, keyword, "widened", "arrays with equal items are admitted")
            elif keyword in _BESIDE and _BESIDE[keyword] in schema and _BESIDE[keyword] in readers:
                yield ReportEntry(pointer, keyword, "enforced")
            elif keyword not in readers:
                yield ReportEntry(pointer, keyword, "annotation")
            else:
                note = _narrowing(keyword, value, schema)
                asked = self.options.formats == "assert"
                if keyword == "format" and not (asked and isinstance(value, str) and value in NAMES):
                    yield ReportEntry(pointer, keyword, "annotation", f"the format {value!r} is not checked")
                elif note:
                    yield ReportEntry(pointer, keyword, "narrowed", note)
                else:
                    yield ReportEntry(pointer, keyword, "enforced")


def _narrowing(keyword: str, value: Any, schema: dict[str, Any]) -> str:
    """Which admitted documents `keyword` makes the grammar refuse."""
    if keyword == "format" and (value in NARROWED or "maxLength" in schema):
        return f"{_CANONICAL}; of {value} a sublanguage (wfsa.grammar.json_schema.formats)"
    if keyword in ("pattern", "format", "patternProperties", "propertyNames"):
        return _CANONICAL
    if keyword == "multipleOf":
        return _NO_EXPONENT
    if keyword in ("enum", "const"):
        return "only the usual spelling of each value; objects in the order of their names here"
    if keyword == "type" and "integer" in (value if isinstance(value, list) else [value]):
        return "integers without fraction and exponent (1, not 1.0)"
    if keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        return "" if isinstance(value, bool) else _NO_EXPONENT
    if keyword == "properties" and isinstance(value, dict) and value:
        return "names in the order of the schema, canonically spelled, undeclared ones last"
    return ""


def _children(pointer: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The subschemas, with their pointers."""
    for keyword, value in schema.items():
        if keyword in _SCHEMA_MAPS and isinstance(value, dict):
            for name, child in value.items():
                yield f"{pointer}/{keyword}/{name.replace('~', '~0').replace('/', '~1')}", child
        elif keyword in _SCHEMA_LISTS and isinstance(value, list):
            for i, child in enumerate(value):
                yield f"{pointer}/{keyword}/{i}", child
        elif keyword in _ONE_SCHEMA:
            yield f"{pointer}/{keyword}", value
