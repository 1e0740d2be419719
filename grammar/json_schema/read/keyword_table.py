"""The keywords of JSON Schema, a row each: all that the rest of this package knows of a keyword by its name.

    readers      what the keyword does to the shape of its schema object (:mod:`.schema_object`)
    holds        where its subschemas are, for references, identifiers, reports and costs (`subschemas`)
    applies      which values the subschemas speak of, for contradictions, explanations and costs
    judge        what a report says of it (:mod:`..explain.report`)
    phrase       what it asks for, in words (`keyword_text`)

Misspelt words are compared with the names of the rows (:mod:`.misspelt`).  docs/adding-a-keyword.md shows how a keyword
is added.

Only in the places of `subschemas` an identifier is an identifier, and a keyword a keyword: under ``enum``, ``default``
or an unknown word everything is data, whatever it looks like.  The places are the same for all drafts; a keyword that a
draft does not have yet is a place for schemas all the same, since a reference may lead there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, Flag, auto
from functools import partial
from typing import Any, Literal

from ..options import DRAFTS
from ..places import Step
from . import keywords as read
from . import verdicts, words

SINCE_6, SINCE_7, SINCE_2019, SINCE_2020 = DRAFTS[1:], DRAFTS[2:], DRAFTS[3:], DRAFTS[4:]


class Holds(Flag):
    """How the value of a keyword holds schemas; `items` is either one or a list."""

    NONE = 0
    ONE = auto()
    LIST = auto()
    MAP = auto()  # by names


class Applies(Enum):
    """Which values the subschemas of a keyword speak of."""

    NONE = auto()  # none: they are there to be referred to
    ALL = auto()  # the value itself, which satisfies each of them
    ANY = auto()  # the value itself, which satisfies at least one of them
    ONE = auto()  # the value itself, which satisfies exactly one of them
    CONDITION = auto()  # the value itself, which may satisfy them or not
    CHILDREN = auto()  # items or the values of properties, each of them
    SOME = auto()  # some of the items
    NAMES = auto()  # the names of properties


@dataclass(frozen=True, slots=True)
class Keyword:
    """One keyword.

    drafts      in which it constrains documents
    speaks_of   the type of the values that it constrains
    holds       how its value holds schemas; `applies`: which values these speak of
    reader      puts what it says into a shape; None if another keyword's reader does (see `reads_with`)
    judge       its status in reports; None for what is always enforced exactly
    phrase      "at least {}" of its value, or what makes the phrase; without one it is called by its name
    reads_with  keywords that its reader reads, too
    reads_if    whether it says anything in a schema object that has it; None: always
    rest_of     keywords that name what it does not speak of
    is_last     whether it depends on everything next to it
    role        "location": an identifier, or a holder of what references lead to; not listed in reports
    """

    name: str
    drafts: tuple[int, ...] = DRAFTS
    speaks_of: Literal["any", "number", "string", "array", "object"] = "any"
    holds: Holds = Holds.NONE
    applies: Applies = Applies.NONE
    reader: read.Reader | None = None
    judge: verdicts.Judge | None = None
    phrase: str | words.Phrase = ""
    reads_with: tuple[str, ...] = ()
    reads_if: Callable[[dict[str, Any]], bool] | None = None
    rest_of: tuple[str, ...] = ()
    is_last: bool = False
    role: Literal["assertion", "location", "annotation"] = "assertion"

    def says_something(self, schema: dict[str, Any], draft: int) -> bool:
        """Whether the keyword, which `schema` has, says something of documents in this draft."""
        if "$ref" in schema and draft <= 7:
            return self.name == "$ref"
        return draft in self.drafts and (self.reads_if is None or self.reads_if(schema))


_ONE, _LIST, _MAP = Holds.ONE, Holds.LIST, Holds.MAP
_EACH = Applies.CHILDREN
_number = partial(Keyword, speaks_of="number", judge=verdicts.number)
_string = partial(Keyword, speaks_of="string")
_array = partial(Keyword, speaks_of="array")
_object = partial(Keyword, speaks_of="object")
_location = partial(Keyword, role="location")
_annotation = partial(Keyword, drafts=(), role="annotation")
_ITEMS = words.rest_text("no further items", "what the items have to fit")
_PROPERTIES = words.rest_text("no other properties", "what all other properties have to fit")

ROWS = (
    Keyword("type", reader=read.type_, judge=verdicts.type_, phrase=words.type_text),
    Keyword("enum", reader=read.enum, judge=verdicts.enum, phrase=words.enum_text),
    Keyword("const", SINCE_6, reader=read.const, judge=verdicts.const, phrase="only {}"),
    Keyword("$ref", reader=read.ref, phrase="what it refers to"),
    Keyword("$dynamicRef", SINCE_2020, reader=read.dynamic_ref("$dynamicRef")),
    Keyword("$recursiveRef", (2019,), reader=read.dynamic_ref("$recursiveRef")),
    Keyword("allOf", holds=_LIST, applies=Applies.ALL, reader=read.branches("allOf"),
            phrase="all of the branches have to fit"),
    Keyword("anyOf", holds=_LIST, applies=Applies.ANY, reader=read.branches("anyOf"),
            phrase="at least one of the branches has to fit"),
    Keyword("oneOf", holds=_LIST, applies=Applies.ONE, reader=read.branches("oneOf"),
            phrase="exactly one of the branches has to fit"),
    Keyword("not", holds=_ONE, applies=Applies.CONDITION, reader=read.one_schema("not"),
            phrase="what fits it is refused"),
    Keyword("if", SINCE_7, holds=_ONE, applies=Applies.CONDITION, reader=read.condition, reads_with=("then", "else"),
            reads_if=lambda schema: "then" in schema or "else" in schema,
            phrase="where `if` fits `then` has to, elsewhere `else`"),
    Keyword("then", SINCE_7, holds=_ONE, applies=Applies.CONDITION, reads_if=lambda schema: "if" in schema),
    Keyword("else", SINCE_7, holds=_ONE, applies=Applies.CONDITION, reads_if=lambda schema: "if" in schema),

    _number("minimum", reader=read.bound("minimum", "low", "exclusiveMinimum"), reads_with=("exclusiveMinimum",),
            phrase=words.bound_text("at least", "above", "exclusiveMinimum")),
    _number("maximum", reader=read.bound("maximum", "high", "exclusiveMaximum"), reads_with=("exclusiveMaximum",),
            phrase=words.bound_text("at most", "below", "exclusiveMaximum")),
    _number("multipleOf", reader=read.multiple_of, phrase="a multiple of {}"),
    _number("exclusiveMinimum", reader=read.bound("exclusiveMinimum", "low"), phrase="above {}"),
    _number("exclusiveMaximum", reader=read.bound("exclusiveMaximum", "high"), phrase="below {}"),

    _string("minLength", reader=read.length("minLength", "min_length"),
            phrase=words.count_text("at least", "character", "characters")),
    _string("maxLength", reader=read.length("maxLength", "max_length"),
            phrase=words.count_text("at most", "character", "characters")),
    _string("pattern", reader=read.pattern, judge=verdicts.text, phrase=words.pattern_text),
    _string("format", reader=read.format_, judge=verdicts.format_, phrase=words.format_text),
    # Only draft 7 lets a validator assert what a string holds.
    _string("contentEncoding", (7,), reader=read.content_encoding, judge=verdicts.content_encoding),
    _string("contentMediaType", (7,), reader=read.content_media_type, judge=verdicts.content_media_type),

    _array("items", holds=_ONE | _LIST, applies=_EACH, reader=read.items, reads_with=("additionalItems",),
           rest_of=("prefixItems",), phrase=_ITEMS),
    _array("prefixItems", SINCE_2020, holds=_LIST, applies=_EACH, reader=read.prefix_items,
           phrase="what the first items have to fit"),
    _array("additionalItems", holds=_ONE, applies=_EACH, phrase=_ITEMS,
           reads_if=lambda schema: isinstance(schema.get("items"), list)),
    _array("unevaluatedItems", SINCE_2019, holds=_ONE, applies=_EACH, reader=read.one_schema("unevaluatedItems"),
           rest_of=("prefixItems",), is_last=True, phrase=_ITEMS),
    _array("minItems", reader=read.count("minItems", "min_items"),
           phrase=words.count_text("at least", "item", "items")),
    _array("maxItems", reader=read.count("maxItems", "max_items"),
           phrase=words.count_text("at most", "item", "items")),
    _array("uniqueItems", reader=read.unique_items, judge=verdicts.unique_items, phrase="no item twice"),
    _array("contains", SINCE_6, holds=_ONE, applies=Applies.SOME, reader=read.contains,
           reads_with=("minContains", "maxContains"), phrase=words.contains_text),
    _array("minContains", SINCE_2019, reads_if=lambda schema: "contains" in schema),
    _array("maxContains", SINCE_2019, reads_if=lambda schema: "contains" in schema),

    _object("properties", holds=_MAP, applies=_EACH, reader=read.properties, judge=verdicts.names,
            phrase="what the properties have to fit"),
    _object("additionalProperties", holds=_ONE, applies=_EACH, reader=read.additional_properties,
            rest_of=("properties", "patternProperties"), phrase=_PROPERTIES),
    _object("unevaluatedProperties", SINCE_2019, holds=_ONE, applies=_EACH,
            reader=read.one_schema("unevaluatedProperties"), judge=verdicts.counted_names,
            rest_of=("properties", "patternProperties"), is_last=True, phrase=_PROPERTIES),
    _object("required", reader=read.required, judge=verdicts.required, phrase=words.required_text),
    _object("patternProperties", holds=_MAP, applies=_EACH, reader=read.pattern_properties, judge=verdicts.text,
            phrase="what properties of such names have to fit"),
    _object("propertyNames", SINCE_6, holds=_ONE, applies=Applies.NAMES, reader=read.property_names,
            judge=verdicts.text, phrase="what the names have to fit"),
    _object("minProperties", reader=read.count("minProperties", "min_properties"), judge=verdicts.counted_names,
            phrase=words.count_text("at least", "property", "properties")),
    _object("maxProperties", reader=read.count("maxProperties", "max_properties"), judge=verdicts.counted_names,
            phrase=words.count_text("at most", "property", "properties")),
    _object("dependencies", holds=_MAP, applies=Applies.ALL, reader=read.dependencies("dependencies"),
            judge=verdicts.names, phrase="which names ask for more"),
    _object("dependentRequired", SINCE_2019, reader=read.dependencies("dependentRequired"), judge=verdicts.names,
            phrase="which names ask for others"),
    _object("dependentSchemas", SINCE_2019, holds=_MAP, applies=Applies.ALL,
            reader=read.dependencies("dependentSchemas"), judge=verdicts.counted_names,
            phrase="which names ask for more"),

    _location("$defs", holds=_MAP),
    _location("definitions", holds=_MAP),
    _location("$id", SINCE_6, reader=read.identifier),
    _location("id", (4,), reader=read.identifier),
    *map(_location, ("$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor")),

    _annotation("contentSchema", holds=_ONE),
    *map(_annotation, ("$comment", "$vocabulary", "default", "deprecated", "description", "examples", "readOnly",
                       "title", "writeOnly")),
)  # fmt: skip


class KeywordTable:
    """Rows by name, and what is asked of all of them together.

    readers     draft -> name -> reader
    known       all names
    lists, maps, ones     names of those that hold schemas so
    of_objects  names of those that speak of objects
    targets     names that a misspelt word may have been meant to be: of what says something about documents, in any
                draft, and of the holders of what references lead to
    nearest     unknown words met so far, and which of `targets` each was probably meant to be
    """

    __slots__ = ("known", "lists", "maps", "nearest", "of_objects", "ones", "readers", "rows", "targets")

    def __init__(self, rows: Iterable[Keyword]) -> None:
        self._use({row.name: row for row in rows})

    def _use(self, rows: dict[str, Keyword]) -> None:
        self.rows = rows
        self.readers = {
            draft: {row.name: row.reader for row in rows.values() if row.reader is not None and draft in row.drafts}
            for draft in DRAFTS
        }  # fmt: skip
        self.known = frozenset(rows)
        self.ones = self.names(lambda row: Holds.ONE in row.holds)
        self.lists = self.names(lambda row: Holds.LIST in row.holds)
        self.maps = self.names(lambda row: Holds.MAP in row.holds)
        self.of_objects = self.names(lambda row: row.speaks_of == "object")
        self.nearest: dict[str, str | None] = {}
        self.targets = tuple(
            row.name for row in rows.values()
            if row.role == "assertion" or (row.role == "location" and row.holds)
        )  # fmt: skip

    def names(self, is_meant: Callable[[Keyword], bool]) -> frozenset[str]:
        """The names of the rows for which `is_meant` holds."""
        return frozenset(row.name for row in self.rows.values() if is_meant(row))

    @contextmanager
    def adding(self, *rows: Keyword) -> Iterator[None]:
        """Adds rows for a while, in all threads; constraints that were compiled before do not change."""
        before = self.rows
        self._use({**before, **{row.name: row for row in rows}})
        try:
            yield
        finally:
            self._use(before)


KEYWORDS = KeywordTable(ROWS)


def subschemas(schema: dict[str, Any]) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Every subschema, with the steps that lead to it: ``("properties", "a")``, ``("anyOf", 0)``, ``("not",)``."""
    for keyword, value in schema.items():
        if isinstance(value, dict) and keyword in KEYWORDS.maps:
            for name, child in value.items():
                if isinstance(child, (dict, bool)) and isinstance(name, str):
                    yield (keyword, name), child
        elif isinstance(value, list) and keyword in KEYWORDS.lists:
            for i, child in enumerate(value):
                if isinstance(child, (dict, bool)):
                    yield (keyword, i), child
        elif isinstance(value, (dict, bool)) and keyword in KEYWORDS.ones:
            yield (keyword,), value


def keyword_text(keyword: str, schema: dict[str, Any]) -> str:
    """What `keyword` of `schema` asks for."""
    row = KEYWORDS.rows.get(keyword)
    if row is None or not row.phrase:
        return keyword
    if not isinstance(row.phrase, str):
        return row.phrase(schema[keyword], schema)
    return row.phrase.format(words.value_text(schema[keyword])) if "{" in row.phrase else row.phrase
