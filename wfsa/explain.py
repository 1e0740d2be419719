"""Why a text cannot go on, in the words of a JSON Schema: ``/properties/age/maximum: at most 120``.

Problem.  A compiled constraint has merged equal parts, intersected keywords and forgotten where they stood, and it
should: compiling is a hot path, and explaining is not.

Method.  The schema is kept as data.  To explain why byte b cannot follow the text P, each keyword that applies where P
ends is compiled by itself (over the 256 bytes, on demand) and asked: does P b go on under you alone?  Who says no is
the reason, and so no keyword is reimplemented here.  An applicator that says no is followed into its subschemas and
references, a member or an item with its own part of P.  If every keyword agrees and all together do not, the smallest
set of them that does not is the reason.

Cost: one small compilation for each keyword on the way to the place, some milliseconds in all.

Constraints explain themselves, and explaining compiles: the caller gives the function that compiles a keyword.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from wfsa.errors import WfsaError
from wfsa.grammar.ir import Grammar
from wfsa.grammar.json_schema import SchemaSource
from wfsa.grammar.json_schema.explain.prefix import WHITESPACE, Written, written
from wfsa.grammar.json_schema.explain.units import units
from wfsa.grammar.json_schema.lowering import read_part
from wfsa.grammar.json_schema.places import pointer_of, segment
from wfsa.grammar.json_schema.read.document import Document, draft_of
from wfsa.grammar.json_schema.read.keyword_table import KEYWORDS, Applies, keyword_text
from wfsa.grammar.json_schema.read.words import MAX_SHOWN, list_text, value_text

END: Final = b""  # the end of the text, in place of a byte
_AFTER_A_VALUE: Final = b",]} \t\r\n"  # what can stand behind a number
_MAX_DEPTH: Final = 64
_MAX_PARTS: Final = 400  # compilations for one answer
_MAX_TOGETHER: Final = 30  # keywords of one object that are looked at together
_MAX_REASONS: Final = 4
_IN_ORDER: Final = "names come in the order of the schema"
_CLOSED: Final = "SchemaOptions(additional_properties=..., required=...): only named properties, or all of them"
_SECONDS: Final = 2.0  # for one compilation
_MAX_SECONDS: Final = 8.0  # for one answer: many small compilations, and long texts, add up


# (a keyword's grammar, seconds it may take) -> its constraint over :func:`wfsa.vocab.byte_vocab`; raises WfsaError
PartCompiler = Callable[[Grammar, float], Any]


class _TooMuch(Exception):
    """The budget of one answer is spent."""


def reasons(source: SchemaSource, text: bytes, byte: bytes, compile_part: PartCompiler) -> list[str]:
    """Why `byte` (`END` for the end) cannot follow `text`: keywords with their pointers; empty if none can be named.

    `text` is known to be the beginning of a document.
    """
    try:
        found = _Explainer(source, compile_part).reasons(text, byte)
    except (WfsaError, _TooMuch, RecursionError):
        return []
    if source.tools:
        found = _of_a_call(found)
    return found[:_MAX_REASONS] + ([f"and {len(found) - _MAX_REASONS} more"] if len(found) > _MAX_REASONS else [])


def _of_a_call(found: list[str]) -> list[str]:
    """The union of calls is ours and not in the list of tools: its pointers mean nothing to the reader."""
    names, out = [], []
    for reason in found:
        name = re.fullmatch(r"/anyOf/\d+/properties/name/const: only (.*)", reason)
        if name is None:
            out.append(re.sub(r"^/anyOf/\d+", "a call", reason))
        else:
            names.append(name[1])
    if names:
        more = f", … ({len(names)} tools)" if len(names) > MAX_SHOWN else ""
        out.insert(0, f"a call/name: one of {', '.join(names[:MAX_SHOWN])}{more}")
    return list(dict.fromkeys(out))


class _Explainer:
    def __init__(self, source: SchemaSource, compile_part: PartCompiler) -> None:
        self.compile_part = compile_part
        options = source.options.as_written()  # a keyword by itself names no properties but its own
        self.closes = options != source.options
        self.document = Document(source.schema, draft_of(source.schema, options.draft), options)
        self.document.scan()
        self.n_parts = 0
        self.depth = 0
        self.until = time.perf_counter() + _MAX_SECONDS

    def reasons(self, text: bytes, byte: bytes) -> list[str]:
        if not self.refuses(True, "$", text, byte):
            found = list(dict.fromkeys(self.blame(self.document.root, "$", text, byte)))
            return found or [_CLOSED] * self.closes
        if byte != END:
            return []  # no JSON text goes on like this
        kind, closing = _open_bracket(text)
        if not closing:
            return [f"the {kind} is not complete"] if kind else []
        missing = list(dict.fromkeys(self.blame(self.document.root, "$", text, closing)))
        return [f"the {kind} is not closed", *(missing or [_CLOSED] * (self.closes and kind == "object"))]

    def refuses(self, part: Any, path: str, text: bytes, byte: bytes) -> bool:
        """Whether `text` goes on with `byte` under everything but `part`: it takes the one and not the other."""
        state = self.begun(part, path, text)
        if state is None:
            return False
        return not (state.is_accepting() if byte == END else state.commit_bytes(byte))

    def begun(self, part: Any, path: str, text: bytes) -> Any:
        """The state after `text`; None if that is no beginning of a document of `part`."""
        constraint = self.compiled(part, path)
        if constraint is None:
            return None
        state = constraint.start()
        return state if state.commit_bytes(text) else None

    def compiled(self, part: Any, path: str) -> Any:
        """The constraint of a part of the schema; None if there is none."""
        self.n_parts += 1
        left = self.until - time.perf_counter()
        if self.n_parts > _MAX_PARTS or left <= 0:
            raise _TooMuch
        try:
            return self.compile_part(read_part(self.document, part, path), min(_SECONDS, left))
        except WfsaError:  # satisfied by nothing, or not to be enforced by itself
            return None

    # ---- one schema --------------------------------------------------------------------------------------------------

    def blame(self, schema: Any, path: str, text: bytes, byte: bytes) -> Iterator[str]:
        """The reasons within one schema, for the value that begins with `text`."""
        if schema is False:
            yield f"{self.pointer(path)}: nothing fits"
        if not isinstance(schema, dict) or self.depth > _MAX_DEPTH:
            return
        self.depth += 1
        named = False
        parts = list(units(schema, self.document.draft_at(path)))
        refused = [unit for unit in parts if unit[1] is not schema and self.refuses(unit[1], path, text, byte)]
        for keyword, part in refused:
            if keyword != "additionalProperties" or refused[0][0] != "properties":  # then it is the order of the names
                named = True
                yield from self.within(keyword, part, schema, path, text, byte)
        if not named and self.refuses(schema, path, text, byte):
            yield from self.together([part for part in parts if part[1] is not schema], schema, path, text, byte)
        self.depth -= 1

    def together(
        self, parts: list[tuple[str, dict[str, Any]]], schema: dict[str, Any], path: str, text: bytes, byte: bytes
    ) -> Iterator[str]:
        """A smallest set of keywords that refuse only together."""
        for keyword, row in KEYWORDS.rows.items():
            if row.is_last and keyword in schema and not self.refuses(_without(schema, keyword), path, text, byte):
                yield f"{self.pointer(path)}/{keyword}: {keyword_text(keyword, schema)}"
                return
        kept = dict(schema)
        for keyword, _ in parts[:_MAX_TOGETHER]:
            fewer = _without(kept, keyword)
            if self.refuses(fewer, path, text, byte):
                kept = fewer
        words = [word for word, _ in parts if word in kept]
        if {"required", "properties"} >= {*words}:
            missing = _missing(schema, text)
            if missing:
                yield f"{self.pointer(path)}/required: {missing}, and {_IN_ORDER}"
                return
        yield " together with ".join(f"{self.pointer(path)}/{w}: {keyword_text(w, schema)}" for w in words)

    def within(
        self, keyword: str, part: dict[str, Any], schema: dict[str, Any], path: str, text: bytes, byte: bytes
    ) -> Iterator[str]:
        """The reasons within one keyword that refuses by itself."""
        deeper = [
            reason for child, where, rest, next_byte in self.below(keyword, part, path, text, byte)
            for reason in self.blame(child, where, rest, next_byte)
        ]  # fmt: skip
        if deeper:
            yield from deeper
            return
        at = f"{self.pointer(path)}/{keyword}"
        here = written(text)
        if keyword == "required" and (missing := _missing(schema, text)):
            yield f"{at}: {missing}" if byte == b"}" else f"{at}: {missing}, and {_IN_ORDER}"
        elif keyword in ("additionalProperties", "propertyNames") and here.kind == "object":
            told = _name_text if part.get(keyword) is False else _refused_name
            yield f"{at}: {told(here, byte)}"
        elif keyword == "properties" and here.kind == "object":
            yield f"{at}: {_order_text(schema, here, byte)}"
        else:
            yield f"{at}: {keyword_text(keyword, schema)}"

    def below(
        self, keyword: str, part: dict[str, Any], path: str, text: bytes, byte: bytes
    ) -> Iterator[tuple[Any, str, bytes, bytes]]:
        """The subschemas through which a keyword refuses: (schema, path, its part of the text, the byte or the end)."""
        value = part[keyword]
        where = f"{path}{segment(keyword)}"
        if keyword == "$ref":
            yield *self.document.resolve(value, path), text, byte
        elif keyword in ("$dynamicRef", "$recursiveRef"):
            yield *self.document.dynamic(value, path), text, byte
        elif isinstance(value, list) and KEYWORDS.rows[keyword].applies in (Applies.ALL, Applies.ANY, Applies.ONE):
            for i, branch in enumerate(value):
                if self.refuses(branch, f"{where}[{i}]", text, byte):  # it took the text so far
                    yield branch, f"{where}[{i}]", text, byte
        else:
            inner = _inner(text, byte)
            if inner is None:
                return
            here, rest, next_byte = inner
            yield from ((child, place, rest, next_byte) for child, place in _children(keyword, part, where, here))

    def pointer(self, path: str) -> str:
        return pointer_of(path, self.document.outside)


def _without(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    return {word: value for word, value in schema.items() if word != keyword}


def _children(keyword: str, part: dict[str, Any], where: str, here: Written) -> Iterator[tuple[Any, str]]:
    """The subschemas of a keyword that hold for the last member or item."""
    value, row = part[keyword], KEYWORDS.rows[keyword]
    if row.applies is not Applies.CHILDREN or row.speaks_of != here.kind:
        return
    if here.kind == "object" and here.names:
        name = here.names[-1]
        if keyword == "properties" and name in value:
            yield value[name], where + segment(name)
        elif keyword == "patternProperties":
            yield from ((child, where + segment(pattern)) for pattern, child in value.items())
        elif keyword != "properties" and name not in part.get("properties", ()):
            yield value, where
    elif here.kind == "array":
        i = here.n_items - 1
        if isinstance(value, list) and i < len(value):
            yield value[i], f"{where}[{i}]"
        elif isinstance(value, list) and "additionalItems" in part:
            yield part["additionalItems"], where.removesuffix("items") + "additionalItems"
        elif not isinstance(value, list) and i >= len(part.get("prefixItems", ())):
            yield value, where


def _inner(text: bytes, byte: bytes) -> tuple[Written, bytes, bytes] | None:
    """The member or item being written: (the text around it, its own text, the byte it gets); None if there is none."""
    here = written(text)
    if here.inside is None:
        return None
    rest = text[here.inside :].lstrip(WHITESPACE)
    value = written(rest)
    if value.closed or (not rest and (byte in WHITESPACE or byte == b"]")):
        return None
    if value.kind == "scalar" and byte in _AFTER_A_VALUE:
        return here, rest, END
    return here, rest, byte


def _open_bracket(text: bytes) -> tuple[str, bytes]:
    """What is not closed at the end of a text, and the byte that would close it if it may be closed there."""
    kind, closing = "", b""
    while True:
        here = written(text)
        if here.kind == "string":
            return (kind, closing) if here.closed else ("string", b"")
        if here.kind not in ("object", "array"):
            if here.kind == "nothing":
                return kind or "document", b""
            return (kind, closing) if closing else ("value", b"")
        if here.closed:
            return kind, closing
        kind, closing = here.kind, b"}" if here.kind == "object" else b"]"
        if here.inside is None:
            waiting = here.key is not None or not _may_close(text)
            return kind, b"" if waiting else closing
        if text.rstrip(WHITESPACE) == text[: here.inside].rstrip(WHITESPACE):
            return kind, closing if closing == b"]" and here.n_items == 1 else b""
        text = text[here.inside :]


def _may_close(text: bytes) -> bool:
    """Whether an object without an open member is behind its brace or a value, and not behind a comma or a name."""
    last = text.rstrip(WHITESPACE)[-1:]
    return last == b"{"


def _missing(schema: dict[str, Any], text: bytes) -> str:
    required, names = schema.get("required"), written(text).names
    missing = [name for name in required if name not in names] if isinstance(required, list) else []
    if not missing:
        return ""
    return f"{list_text(missing)} {'is' if len(missing) == 1 else 'are'} missing"


def _begun_name(here: Written, byte: bytes) -> str | None:
    """The name being written, with the byte that was refused, where it is text."""
    if here.key is None:
        return None
    return here.key + (byte.decode("ascii", "ignore") if byte != b'"' else "")


def _name_text(here: Written, byte: bytes) -> str:
    name = _begun_name(here, byte)
    if name is None:
        return "no further property" if byte in b',"' else "no other properties"
    shown = value_text(name)
    return f"no property {shown}" if byte == b'"' else f"no property {shown[:-1]}…\""


def _refused_name(here: Written, byte: bytes) -> str:
    name = _begun_name(here, byte)
    return "no name goes on like this" if name is None else f"no name begins with {value_text(name)}"


def _order_text(schema: dict[str, Any], here: Written, byte: bytes) -> str:
    """A name that is refused only because of its place."""
    declared = list(schema["properties"])
    name = _begun_name(here, byte) or ""
    written_names = [n for n in declared if n in here.names]
    if name in here.names:
        return f"{value_text(name)} is there already"
    if byte in b',"' and written_names and name == "":
        return f"nothing may follow {value_text(written_names[-1])}"
    meant = [n for n in declared if n.startswith(name)]
    if meant and written_names:
        return f"{value_text(meant[0])} has to stand before {value_text(written_names[-1])}"
    return keyword_text("properties", schema)
