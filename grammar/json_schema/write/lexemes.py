"""The terminals of JSON text, with the whitespace glued in front.

Whitespace of its own would be a terminal that may be empty or follow itself; behind a lexeme it would make the lexeme
go on after its end.  In front, with W the whitespace of the policy, every terminal starts where the last one ended:

    W {    W }    W [    W ]    W ,    W "name" W :    W "..."    W -?(0|[1-9][0-9]*)    W true

                 W               ,      :
    flexible     [ \\t\\n\\r]*       ,      :
    compact      nothing         ,      :
    python       nothing         ", "   ": "
    indent       nothing         ,      ": "    and line breaks, which depend on the depth (:mod:`.indentation`)

"flexible" accepts whitespace before the document and none behind it.  A bound on W is no part of the terminals: as a
repetition it would multiply the lexer's states; :attr:`wfsa.grammar.ir.Grammar.white_space` has it.  Inside a larger
text, which has white space of its own, it is a repetition all the same.
Byte strings can be barred, where a document is part of a text in which they end it: no string is spelled with them.
There is one `Lexemes` per policy and process: equal terminals of two schemas are the same object, which is what caches
of automata behind the grammar want.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal

from ...free_text import without
from ...regular import EPSILON, Chars, Literal, Regular, alt, both, cat, minus, repeat
from ..domains.types import BOOLEAN, FRACTION, INTEGER, NULL, SCALARS, STRING
from ..options import SchemaOptions, Spelling, Whitespace
from ..spelling.intervals import INTEGER as INTEGER_TREE
from ..spelling.intervals import NUMBER as NUMBER_TREE
from ..spelling.numbers import within
from ..spelling.strings import (
    ANY_STRING,
    CANONICAL_STRING,
    COUNTED_STRING,
    QUOTE,
    quoted,
    spelled,
    spelled_text,
)

_BLANK = Chars(((9, 10), (13, 13), (32, 32)))
_MAX_CACHED = 4096
_MAX_POLICIES = 32


class Lexemes:
    """The terminals' patterns under one policy of whitespace and spelling."""

    __slots__ = (
        "_barred", "_colon", "_gap", "_keys", "_plain", "_spelling", "_trees", "any_key", "close_array",
        "close_object", "comma", "counted_string", "open_array", "open_object",
    )  # fmt: skip

    def __init__(
        self, whitespace: Whitespace, spelling: Spelling, gap: int | None, barred: frozenset[bytes] = frozenset()
    ) -> None:
        self._spelling: Spelling = spelling
        self._barred = barred
        self._gap: Regular = repeat(_BLANK, 0, gap) if whitespace == "flexible" else EPSILON
        space = " " if whitespace == "python" else ""
        self._colon = Literal(b": " if whitespace in ("python", "indent") else b":")
        self.open_object = self.glued(Literal(b"{"))
        self.close_object = self.glued(Literal(b"}"))
        self.open_array = self.glued(Literal(b"["))
        self.close_array = self.glued(Literal(b"]"))
        self.comma = self.glued(Literal(f",{space}".encode()))
        self.counted_string = self.glued(COUNTED_STRING)  # what is barred is taken out by `free`
        self.any_key = self._key_tree(self.free(ANY_STRING))
        self._keys: dict[str, Regular] = {}
        self._plain: dict[int, Regular] = {}
        self._trees: dict[object, Regular] = {}

    def glued(self, tree: Regular) -> Regular:
        return cat(self._gap, tree)

    @property
    def bars(self) -> bool:
        """Whether some byte strings are barred."""
        return bool(self._barred)

    def is_barred(self, spelling: bytes) -> bool:
        """Whether a spelling has one of the barred byte strings in it."""
        return any(word in spelling for word in self._barred)

    def free(self, tree: Regular) -> Regular:
        """The words of `tree` in which nothing barred occurs."""
        return both(tree, without(self._barred)) if self._barred else tree

    def spelled_text(self, text: str) -> Regular:
        """The spellings of one text: where the canonical one is barred, all others that are not."""
        if self._spelling == "canonical":
            usual = quoted(text)
            if not self.is_barred(usual):
                return Literal(usual)
        return self.free(spelled_text(text, "any"))

    def _key_tree(self, name: Regular) -> Regular:
        return cat(self._gap, name, self._gap, self._colon)

    def key(self, name: str) -> Regular:
        """``W "name" W :``; UnicodeEncodeError for a lone surrogate."""
        got = self._keys.get(name)
        if got is None:
            if len(self._keys) >= _MAX_CACHED:
                self._keys.clear()
            got = self._key_tree(self.spelled_text(name))
            self._keys[name] = got
        return got

    def other_key(self, names: Iterable[str]) -> Regular:
        """Every key but `names`."""
        taken: list[Regular] = []
        for name in names:
            try:
                taken.append(spelled_text(name, "any" if self._barred else self._spelling))
            except UnicodeEncodeError:
                pass  # no text has this name
        strings = CANONICAL_STRING if self._spelling == "canonical" else ANY_STRING
        return self._key_tree(self.free(minus(strings, alt(*taken))))

    def key_of(self, texts: Regular) -> Regular:
        """The keys in a language of texts."""
        return self._key_tree(self.free(cat(QUOTE, spelled(texts, self._spelling), QUOTE)))

    def constant(self, usual: bytes) -> Regular:
        """Every spelling of a scalar, which is given by the usual one; without whitespace."""
        value = json.loads(usual, parse_float=Decimal)
        if isinstance(value, str):
            return self.free(spelled_text(value, "any"))
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            number = Decimal(value)
            return within(number, False, number, False)
        return Literal(usual)

    def plain_body(self, mask: int) -> Regular:
        """All scalars of the types in `mask`, without whitespace."""
        parts: list[Regular] = []
        if mask & STRING:
            parts.append(self.free(ANY_STRING))
        if mask & FRACTION:
            parts.append(NUMBER_TREE)
        elif mask & INTEGER:
            parts.append(INTEGER_TREE)
        if mask & BOOLEAN:
            parts += [Literal(b"true"), Literal(b"false")]
        if mask & NULL:
            parts.append(Literal(b"null"))
        return alt(*parts)

    def plain(self, mask: int) -> Regular:
        """All scalars of the types in `mask`."""
        got = self._plain.get(mask)
        if got is None:
            got = self._plain[mask] = self.glued(self.plain_body(mask))
        return got

    def cached(self, key: object) -> Regular | None:
        """A tree that was kept under `key`."""
        return self._trees.get(key)

    def keep(self, key: object, tree: Regular) -> None:
        if len(self._trees) >= _MAX_CACHED:
            self._trees.clear()
        self._trees[key] = tree


_TYPE_NAMES = ((STRING, "string"), (FRACTION, "number"), (INTEGER, "integer"), (BOOLEAN, "boolean"), (NULL, "null"))
_made: dict[tuple[Whitespace, Spelling, int | None, frozenset[bytes]], Lexemes] = {}


def lexemes(options: SchemaOptions, gap: int | None, barred: frozenset[bytes] = frozenset()) -> Lexemes:
    """The ones of these options, with at most `gap` characters of whitespace in one place (None: no bound)."""
    key = options.whitespace, options.spelling, gap, barred
    got = _made.get(key)
    if got is None:
        if len(_made) >= _MAX_POLICIES:
            _made.clear()
        got = _made[key] = Lexemes(*key)
    return got


def type_names(mask: int) -> str:
    """The scalar types in `mask`, for messages."""
    if mask == SCALARS:
        return "scalar"
    if mask & FRACTION:
        mask &= ~INTEGER
    return " or ".join(name for bit, name in _TYPE_NAMES if mask & bit)


