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
from typing import Any, NamedTuple, get_args, overload

from ..options import SchemaOptions
from ..places import pointer as pointer_text
from ..places import pointer_of
from ..read.keyword_table import KEYWORDS, Keyword, subschemas
from ..read.verdicts import ENFORCED, Status, Verdict
from ..widening import Widening


class ReportEntry(NamedTuple):
    """One keyword at one place."""

    pointer: str  # JSON pointer of the schema object; "" is the root
    keyword: str  # "" for what holds for every document, or if widened for a whole object or array
    status: Status
    note: str = ""


_MAX_WIDTH = 60  # of a column of a report that is printed; longer places move the rest of their line
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

    def _of(self, pointer: str, schema: dict[str, Any]) -> Iterator[ReportEntry]:
        for keyword, value in schema.items():
            row = KEYWORDS.rows.get(keyword)
            if row is None or row.role != "location":
                yield ReportEntry(pointer, keyword, *self._judged(row, value, schema))

    def _judged(self, row: Keyword | None, value: Any, schema: dict[str, Any]) -> Verdict:
        if row is None or not row.says_something(schema, self.draft):
            beside = "$ref" in schema and self.draft <= 7
            return "annotation", f"draft {self.draft} ignores what stands beside $ref" if beside else ""
        return ENFORCED if row.judge is None else row.judge(value, schema, self.options, self.draft)

    def _children(self, pointer: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The subschemas that are applied or may be referred to, with their pointers."""
        for steps, child in subschemas(schema):
            row = KEYWORDS.rows[str(steps[0])]
            if row.role == "location" or row.says_something(schema, self.draft):
                yield pointer + pointer_text(steps), child


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
