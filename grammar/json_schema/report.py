"""What of a schema is enforced: one entry per keyword of the document, made on demand.

Compiling does not pay for the report: a `SchemaReport` has `SchemaEntries` walk the schema when somebody asks.
They walk what is applied and what stands under ``$defs``; documents out of a registry are enforced and not listed.

    enforced     exactly the values that the keyword admits
    narrowed     no value that it forbids; some spellings of admitted values, or orders, are refused
    annotation   not an assertion here (titles, unknown words, formats that are not checked)
    widened      the caller asked that it be ignored (``SchemaOptions.unique_items``), or where it cannot be enforced
                 (``SchemaOptions.lenient``)

Nothing else is ever widened.  What is called enforced takes every spelling; what is called narrowed may, at one place
or another, since a keyword is judged without those in other objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, Literal, NamedTuple, get_args, overload

from .contents import encoding_pattern, holds_json
from .finite import MAX_SPELLED, is_cheap
from .formats import NARROWED, format_name
from .keywords import READERS
from .number_spellings import PLACES
from .options import SchemaOptions
from .places import pointer_of, subschemas
from .widening import Widening

Status = Literal["enforced", "narrowed", "annotation", "widened"]


class ReportEntry(NamedTuple):
    """One keyword at one place."""

    pointer: str  # JSON pointer of the schema object; "" is the root
    keyword: str  # "" for what holds for every document, or if widened for a whole object or array
    status: Status
    note: str = ""


_CANONICAL = "strings only as json.dumps(ensure_ascii=False) spells them"
_COUNT_OR_CLASS = ("minProperties", "maxProperties", "dependentSchemas", "unevaluatedProperties")
_NO_EXPONENT = "no exponents (0.001, not 1e-3), no -0"
FAR = PLACES + 4
_MAX_WIDTH = 60  # of a column of a report that is printed; longer places move the rest of their line
_PLACES = (
    f"beside an exponent at most {PLACES} digits before and behind the point (not 1{'0' * FAR}e-{FAR})"
)
_LOCATIONS = frozenset((
    "$id", "id", "$defs", "definitions", "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor",
))  # fmt: skip
# Keywords that another one reads, and the first draft that has both.
BESIDE = {"then": ("if", 7), "else": ("if", 7), "minContains": ("contains", 2019), "maxContains": ("contains", 2019)}
_WHITESPACE = {
    "flexible": "{any} before every lexeme, none behind the document",
    "compact": "no whitespace",
    "indent": (
        "the layout of json.dumps(indent={indent}); what recurs is followed down to {depth} levels, and documents "
        "nested deeper are refused there"
    ),
    "python": 'one space after "," and ":", no other whitespace',
}


class SchemaReport(Sequence[ReportEntry]):
    """What of a JSON Schema, or of a list of tools, is enforced: a sequence of :class:`ReportEntry`.

    ``str(report)`` is a table.  Two reports are equal if their entries are.
    """

    __slots__ = ("_entries", "_source")

    def __init__(self, source: Iterable[ReportEntry]) -> None:
        """`source` is iterated once, when the first entry is asked for."""
        self._source: Iterable[ReportEntry] | None = source
        self._entries: tuple[ReportEntry, ...] = ()

    @property
    def entries(self) -> tuple[ReportEntry, ...]:
        """All of them, in the order of the schema; first what holds for every document."""
        if self._source is not None:
            self._entries = tuple(self._source)
            self._source = None
        return self._entries

    @property
    def enforced(self) -> tuple[ReportEntry, ...]:
        """The keywords that are enforced in every spelling of a document."""
        return self._of("enforced")

    @property
    def narrowed(self) -> tuple[ReportEntry, ...]:
        """The keywords that are enforced, and some spellings or orders refused with them."""
        return self._of("narrowed")

    @property
    def annotations(self) -> tuple[ReportEntry, ...]:
        """What says nothing about documents: titles, unknown words, formats that are not checked."""
        return self._of("annotation")

    @property
    def widened(self) -> tuple[ReportEntry, ...]:
        """What is not enforced, by an option: documents that break it can be written."""
        return self._of("widened")

    def _of(self, status: Status) -> tuple[ReportEntry, ...]:
        return tuple(entry for entry in self.entries if entry.status == status)

    @overload
    def __getitem__(self, index: int) -> ReportEntry: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[ReportEntry, ...]: ...

    def __getitem__(self, index: int | slice) -> ReportEntry | tuple[ReportEntry, ...]:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return self.entries == other.entries if isinstance(other, SchemaReport) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.entries)

    def __reduce__(self) -> tuple[type[SchemaReport], tuple[tuple[ReportEntry, ...]]]:
        return SchemaReport, (self.entries,)

    def __repr__(self) -> str:
        counts = Counter(entry.status for entry in self.entries)
        return f"SchemaReport({', '.join(f'{counts[status]} {status}' for status in get_args(Status))})"

    def __str__(self) -> str:
        rows = [(e.pointer or ("(root)" if e.keyword else "(all)"), e.keyword, e.status, e.note) for e in self.entries]
        widths = [min(max((len(row[i]) for row in rows), default=0), _MAX_WIDTH) for i in range(3)]
        lines = ["  ".join((*map(str.ljust, row[:3], widths), row[3])).rstrip() for row in rows]
        return "\n".join((*lines, repr(self)))


@dataclass(frozen=True, slots=True)
class SchemaEntries:
    """The entries of one schema's report; iterate."""

    schema: Any = field(repr=False)
    options: SchemaOptions
    draft: int
    widenings: tuple[Widening, ...] = ()

    def __iter__(self) -> Iterator[ReportEntry]:
        out = [
            ReportEntry("", "", "narrowed", f"whitespace: {_whitespace(self.options)}"),
            ReportEntry("", "", "annotation", f"options: {_shown(self.options)}"),
            ReportEntry("", "", "narrowed", "lone surrogates (\"\\ud800\") are refused"),
        ]
        out += (ReportEntry("", "", "narrowed", note) for note in _closing(self.options))
        lost = {(pointer_of(w.path), w.keyword): w.why for w in self.widenings}
        todo: list[tuple[str, Any]] = [("", self.schema)]
        while todo:
            pointer, schema = todo.pop()
            if not isinstance(schema, dict):
                continue
            for entry in self._of(pointer, schema):
                why = lost.pop((pointer, entry.keyword), None)
                out.append(entry if why is None else entry._replace(status="widened", note=f"not enforced: {why}"))
            todo += reversed(list(self._children(pointer, schema)))
        out += (ReportEntry(*place, "widened", f"not enforced: {why}") for place, why in lost.items())
        return iter(out)

    def reads(self, keyword: str, schema: dict[str, Any]) -> bool:
        """Whether a keyword of `schema` says anything in this draft."""
        if "$ref" in schema and self.draft <= 7:
            return keyword == "$ref"
        if keyword in BESIDE:
            other, since = BESIDE[keyword]
            return other in schema and self.draft >= since
        if keyword == "additionalItems":
            return isinstance(schema.get("items"), list)
        if keyword == "if":
            return self.draft >= 7 and ("then" in schema or "else" in schema)
        return keyword in READERS[self.draft]

    def _of(self, pointer: str, schema: dict[str, Any]) -> Iterator[ReportEntry]:
        for keyword, value in schema.items():
            if keyword in _LOCATIONS:
                continue
            status, note = self._judged(keyword, value, schema)
            yield ReportEntry(pointer, keyword, status, note)

    def _judged(self, keyword: str, value: Any, schema: dict[str, Any]) -> tuple[Status, str]:
        if not self.reads(keyword, schema):
            beside = "$ref" in schema and self.draft <= 7
            return "annotation", f"draft {self.draft} ignores what stands beside $ref" if beside else ""
        if keyword == "uniqueItems" and value is True and self.options.unique_items == "unchecked":
            return "widened", "arrays with equal items are admitted"
        if keyword == "format" and not (self.options.formats == "assert" and format_name(value, self.draft)):
            return "annotation", f"the format {value!r} is not checked"
        if keyword in ("contentEncoding", "contentMediaType"):
            known = encoding_pattern(value) is not None if keyword == "contentEncoding" else holds_json(schema)
            if self.options.formats != "assert" or not known:
                return "annotation", f"what is in {value!r} is not checked"
        note = _narrowing(keyword, value, schema, self.options)
        return ("narrowed" if note else "enforced"), note

    def _children(self, pointer: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The subschemas that are applied or may be referred to, with their pointers."""
        for steps, child in subschemas(schema):
            if steps[0] in _LOCATIONS or self.reads(str(steps[0]), schema):
                words = (str(step).replace("~", "~0").replace("/", "~1") for step in steps)
                yield "/".join((pointer, *words)), child


@dataclass(frozen=True, slots=True)
class TagEntries:
    """The entries of the reports of schemas within a structural tag, by their places, and its own; iterate."""

    own: tuple[ReportEntry, ...]
    parts: tuple[tuple[str, SchemaReport], ...]

    def __iter__(self) -> Iterator[ReportEntry]:
        out = dict.fromkeys(self.own)
        for prefix, entries in self.parts:
            out.update(dict.fromkeys(placed(prefix, entries)))
        return iter(out)


def placed(prefix: str, entries: Iterable[ReportEntry]) -> Iterator[ReportEntry]:
    """The entries of a schema that stands at `prefix`; what holds for every document has no place, to be said once."""
    for entry in entries:
        whole = not entry.keyword and entry.status != "widened"
        yield entry if whole else entry._replace(pointer=prefix + entry.pointer)


def _closing(options: SchemaOptions) -> Iterator[str]:
    """What the options take away from the objects that the schema admits."""
    if options.additional_properties == "forbid":
        yield "properties that no part of the schema names are refused where none says anything about them"
    if options.required == "all":
        yield "all properties under `properties` have to be there"


def _whitespace(options: SchemaOptions) -> str:
    some = f"up to {options.max_whitespace} characters of whitespace"
    if options.max_whitespace is None:
        some = "any whitespace"
    elif options.max_whitespace == "indented":
        some = "whitespace as far as a document printed with indent=4 needs it"
    return _WHITESPACE[options.whitespace].format(
        any=some, indent=options.indent, depth=options.max_depth,
    )  # fmt: skip


def _shown(options: SchemaOptions) -> str:
    """The options in a line, but for the registry."""
    names = (option.name for option in fields(options) if option.name != "registry")
    return ", ".join(f"{name}={getattr(options, name)}" for name in names)


def _narrowing(keyword: str, value: Any, schema: dict[str, Any], options: SchemaOptions) -> str:
    """Which admitted documents `keyword` makes the grammar refuse."""
    canonical = options.spelling == "canonical"
    if keyword == "format" and (value in NARROWED or "maxLength" in schema):
        part = f"of {value} a sublanguage (wfsa.grammar.json_schema.formats)"
        return f"{_CANONICAL}; {part}" if canonical else part
    if keyword == "contentMediaType":
        part = "a sublanguage, not nested deeply (wfsa.grammar.json_schema.contents)"
        return f"{_CANONICAL}; {part}" if canonical else part
    if keyword in ("pattern", "format", "contentEncoding", "patternProperties", "propertyNames"):
        return _CANONICAL if canonical else ""
    if keyword == "multipleOf":
        return _NO_EXPONENT if canonical else _PLACES
    if keyword in ("enum", "const"):
        return _constants(value if keyword == "enum" else [value], options)
    if keyword == "type" and "integer" in (value if isinstance(value, list) else [value]):
        if "number" in value:
            return ""
        return "integers without fraction and exponent (1, not 1.0)" if canonical else _PLACES
    if keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if isinstance(value, bool):
            return ""
        return _NO_EXPONENT if canonical else _PLACES if value else ""
    if keyword in ("properties", "required", "dependentRequired", "dependencies") and value:
        if keyword == "required" and isinstance(schema.get("properties"), dict) and {*value} <= {*schema["properties"]}:
            return ""
        order = "in the order of the schema, all others last" if options.property_order == "declared" else ""
        words = ", ".join(filter(None, (order, "canonically spelled" if canonical else "")))
        return words and f"names {words}"
    if keyword in _COUNT_OR_CLASS and value is not True:
        return "names canonically spelled" if canonical else ""
    return ""


def _constants(values: Any, options: SchemaOptions) -> str:
    """Which spellings of the values of an enum are refused."""
    notes = []
    kinds = [type(v) for v in _within(values)]
    if options.spelling == "canonical":
        notes.append("only the usual spelling of each value")
    elif not is_cheap(values):
        notes.append(f"only the usual spelling of each value, since they have more than {MAX_SPELLED} characters")
    elif {int, float, Decimal}.intersection(kinds):
        notes.append(_PLACES)
    if dict in kinds and options.property_order == "declared":
        notes.append("objects in the order of their names here")
    return "; ".join(notes)


def _within(values: Any) -> list[Any]:
    """Values and all that is in them."""
    todo = list(values)
    for value in todo:  # grows while it is walked
        if isinstance(value, (list, dict)):
            todo += value if isinstance(value, list) else value.values()
    return todo
