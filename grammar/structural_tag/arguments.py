"""The arguments of a call in an XML-like style, from the same shapes as JSON documents.

Input: the schema of the arguments, and a style.  Output: a grammar of their texts.

    alternatives        shapes of the schema, as for JSON                    (json_schema)
    Objects, Arrays     which properties and items, in which states          (json_schema)
    StyleProductions    their rules: begins and ends in place of brackets    (here)
    Lowering            values that are JSON in the style                    (json_schema)

So every keyword says of arguments what it says of documents.  What differs:

    strings         are texts: the language of the values, without those in which the end of the value occurs
    JSON values     no string in them is spelled with the end of the value; another spelling is taken where there is one
    other names     properties that the schema does not name are taken only where ``additionalProperties`` (or what else
                    says something of other properties) is there: a model is not asked for arguments that nobody wants.
                    Of these names only plain ones are taken, and in a style that writes names twice none

Where a style does not tell the type of a value, a text counts as a string if the schema has strings, and as JSON.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from wfsa.errors import LimitError

from ..expressions import Expr
from ..ir import Grammar
from ..json_schema.domains.arrays import Arrays
from ..json_schema.domains.handles import NOTHING_AT_ALL, Handle, number_of
from ..json_schema.domains.objects import Objects
from ..json_schema.domains.shape import Shape, Tracks
from ..json_schema.domains.strings import ANY_STRINGS
from ..json_schema.domains.types import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, type_of
from ..json_schema.lowering import LoweredSchema, Lowering, lowered_schema, narrowed
from ..json_schema.options import SchemaOptions
from ..json_schema.read.closing import closed
from ..json_schema.read.document import Document, draft_of
from ..json_schema.write.memo import Memo
from ..json_text import has_utf8
from ..regular import Regular, Words, alt
from .style_productions import SPACE, StyleProductions
from .xml_styles import Style, untrimmed

_KINDS = (("number", NUMBER), ("boolean", BOOLEAN), ("null", NULL), ("array", ARRAY), ("object", OBJECT))


class Ends(Protocol):
    """What the grammar around makes of texts, in which special tokens may stand."""

    def written(self, text: str) -> Expr:
        """A text of the style."""

    def ended(self, words: Regular | None, end: str, barred: frozenset[bytes]) -> Expr:
        """Text that ends where `end` first occurs: one of `words`, or any, and nothing barred in it."""


def read_arguments(
    schema: Any, style: Style, ends: Ends, options: SchemaOptions, too_large: frozenset[str], barred: frozenset[bytes]
) -> LoweredSchema:
    """Lower the schema of arguments to a grammar of their texts in a style.

    `too_large` and `barred` as for :func:`.read_json_schema`; raises what that raises.
    """
    try:
        document = Document(schema, draft_of(schema, options.draft), options, too_large, True, barred)
        grammar = _ArgumentLowering(document, style, ends).run(schema)
    except RecursionError:
        raise LimitError("the schema nests deeper than Python's stack; flatten it at $") from None
    return lowered_schema(document, schema, grammar)


class _ArgumentLowering:
    """Makes the grammar of one schema's arguments in a style."""

    def __init__(self, document: Document, style: Style, ends: Ends) -> None:
        self.style, self.ends = style, ends
        self.barred = document.barred
        self.closing = replace(document.options, additional_properties="forbid")
        self.json = Lowering(document)  # of the values that are JSON
        read = self.json.memo.read
        self.out = StyleProductions(self.json.memo.out, style, ends.written)
        self.memo = Memo(document, self.value, read, self.out, self.described)
        self.nested = Lowering(document, self.memo)  # of objects and arrays in the style
        self.constants: dict[int, dict[str, Any]] = {}  # by the number of a value, which the schema keeps alive
        self._described: dict[int, tuple[Handle, list[Shape]]] = {}

    def run(self, schema: Any) -> Grammar:
        """The texts of the arguments; raises NoDocument if there are none.  It runs once."""
        try:
            return self._grammar(schema)
        finally:
            self.memo.close()
            self.json.memo.close()

    def _grammar(self, schema: Any) -> Grammar:
        memo = self.memo
        shapes = [closed(s, self.closing) for s in memo.read.of_handle((schema, "$"), Tracks.EACH)]
        if shapes and not any(narrowed(s, OBJECT) for s in shapes):
            memo.empty("arguments are an object, and the schema has none", "$")
        start = self.containers(shapes, OBJECT, "$")
        while self.json.drain() or self.nested.drain():
            pass
        json = self.json.memo
        json.may_be_empty |= memo.may_be_empty or self.out.has_dead
        return self.json.grammar(start, "$")

    def described(self, handle: Handle) -> list[Shape]:
        """What is written for a child: closed as the arguments are, where it is written in the style."""
        read = self.memo.read
        if self.style.item is None:
            return read.described(handle)
        got = self._described.get(number_of(handle))
        if got is None:
            shapes = [closed(s, self.closing) for s in read.of_handle(handle, Tracks.EACH)]
            got = self._described[number_of(handle)] = handle, shapes
        return got[1]

    # ---- values ------------------------------------------------------------------------------------------------------

    def value(self, shapes: list[Shape], path: str) -> int | None:
        """The symbol of a value with its end, from the place behind its key; None if there is none."""
        ways: list[int] = []
        text = self.text(shapes, path)
        if text is not None:
            label = self.style.types.get("string", "")
            ways.append(self.out.sequence((*self.told(label, path), *text), "text", path))
        end = self.out.text(self.style.stop, path)
        as_json: dict[str, int] = {}  # what the style tells -> the types that are JSON
        for kind, mask in _KINDS:
            label = self.style.types.get(kind, "")
            if self.style.item is None or kind not in ("array", "object"):
                as_json[label] = as_json.get(label, 0) | mask
                continue
            inside = self.containers(shapes, mask, path)
            if inside is not None:
                ways.append(self.out.sequence((*self.told(label, path), inside, *end), kind, path))
        for label, mask in as_json.items():
            some = [narrow for s in shapes if (narrow := narrowed(s, mask)) is not None]
            document = self.json.union(some, path) if some else None
            if document is not None:
                parts = (*self.told(label, path), document, *self.out.symbols(SPACE, path), *end)
                ways.append(self.out.sequence(parts, "value", path))
        return self.out.union(tuple(dict.fromkeys(ways)), path) if ways else None

    def told(self, label: str, path: str) -> tuple[int, ...]:
        """What tells the type of a value."""
        return self.out.text(label + self.style.value, path) if self.style.types else ()

    def containers(self, shapes: list[Shape], kind: int, path: str) -> int | None:
        """The symbol of the objects or arrays, by `kind`, of some shapes, in the style."""
        symbols: dict[int, None] = {}
        for shape in shapes:
            parts = [shape] if shape.mask & kind else []
            if shape.values is not None:
                some = [v for v in shape.values if type_of(v) & kind and self.memo.read.accepts(v, shape)]
                parts = [self.constant(v, shape.path) for v in some]
                if not parts:
                    self.memo.empty("none of the values in enum or const satisfies the keywords beside it", shape.path)
            for part in parts:
                symbol = self.nested.nested(part, kind)
                if symbol is not None:
                    symbols[symbol] = None
        return self.out.union(tuple(symbols), path) if symbols else None

    def constant(self, value: Any, path: str) -> Shape:
        """The shape of one object or array."""
        if isinstance(value, dict):
            objects = Objects({name: self.only(v, path) for name, v in value.items()}, NOTHING_AT_ALL, tuple(value))
            return Shape(path, mask=OBJECT, objects=objects)
        items, n = tuple(self.only(v, path) for v in value), len(value)
        return Shape(path, mask=ARRAY, arrays=Arrays(items, NOTHING_AT_ALL, n, n))

    def only(self, value: Any, path: str) -> Handle:
        """A child that is one value; the same one wherever the same object is in a constant."""
        return self.constants.setdefault(id(value), {"const": value}), path

    # ---- texts -------------------------------------------------------------------------------------------------------

    def text(self, shapes: list[Shape], path: str) -> tuple[int, ...] | None:
        """The symbols of the strings of some shapes, as texts with their end; None if there are none."""
        languages: list[Regular] = []
        for shape in shapes:
            if not shape.mask & STRING:
                continue
            if shape.values is not None:
                texts = [v for v in shape.values if isinstance(v, str) and self.memo.read.accepts(v, shape)]
                words = {word for text in texts if has_utf8(text) and not self.ends_in(word := text.encode())}
                if words:
                    languages.append(Words(frozenset(words)))
                elif texts:
                    self.memo.empty("each of the texts has what ends a value in it", shape.path)
                continue
            if path in self.memo.document.widenings.too_large:
                shape = self.nested.scalars.any_texts(shape)
            if shape.strings == ANY_STRINGS:
                return self._ended(None, path)
            language = shape.strings.language()
            if language is None:
                self.memo.empty("no string has the length and matches the pattern or format", shape.path)
            else:
                languages.append(language)
        return self._ended(alt(*languages), path) if languages else None

    def _ended(self, texts: Regular | None, path: str) -> tuple[int, ...]:
        if texts is not None and self.style.trims:
            texts = untrimmed(texts)
        return self.out.symbols(self.ends.ended(texts, self.style.stop, self.barred), path)

    def ends_in(self, word: bytes) -> bool:
        """Whether what ends a value occurs in a text."""
        return any(mark in word for mark in self.barred)
