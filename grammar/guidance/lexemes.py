r"""The lexemes of a grammar file in llguidance's dialect.

They are Lark's, except that a name may contain ``-``, a string is a JSON string that also knows ``\xHH``, a regular
expression may go over several lines, and a JSON value stands behind ``%json``, ``%regex`` and ``%llguidance``.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from wfsa.errors import GrammarError

from ..allowance import check
from .nodes import Place

JSON_KEYWORDS: Final = ("%json", "%regex", "%llguidance")

# Group name = kind; P is punctuation, a keyword or an operator, whose kind is its own text; BAD is anything else.
_LEXEMES = re.compile(
    r"""(?P<SKIP>(?:\#|//)[^\n]*|[ \t\f]+|\\[ ]*\n)
      | (?P<NEWLINE>(?:\r?\n)+[ \t]*)
      | (?P<STRING>"(?:\\(?:["\\/bfnrt]|u[a-fA-F0-9]{4}|x[a-fA-F0-9]{2})|[^"\\\x00-\x1f\x7f])*"i?)
      | (?P<REGEXP>/(?:\\.|[^/\\])+/[imslux]*)
      | (?P<RULE>(?:!\??|\?!?)?_?[a-z](?:[_a-z0-9]|-(?!>))*)
      | (?P<TERMINAL>_?[A-Z](?:[_A-Z0-9]|-(?!>))*)
      | (?P<HEX>0[xX][0-9a-fA-F]+)
      | (?P<NUMBER>[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<SPECIAL><[^<>\s]+>)
      | (?P<REFERENCE>@[a-zA-Z0-9_\-]+)
      | (?P<P>%(?:ignore|import|override|declare|extend|json|regex|llguidance|lark|if)\b
             |::|\.\.|->|[][{}():,.~|&=+*?_])
      | (?P<BAD>[\s\S])""",
    re.VERBOSE,
)
_HEX_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|.)", re.DOTALL)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


@dataclass(frozen=True, slots=True)
class Lexeme:
    kind: str
    text: str
    offset: int
    value: Any = None  # behind a keyword that takes one


class Lexemes:
    """The lexemes of `text`, ended by an END, and where they stand."""

    def __init__(self, text: str) -> None:
        """Raises GrammarError where the text has no lexeme, or no JSON value where one has to stand."""
        self.text = text
        self.lines = [0, *(m.end() for m in re.finditer("\n", text))]  # where each begins
        self.listed: list[Lexeme] = []
        at = 0
        while at < len(text):
            if not len(self.listed) & 0xFF:
                check()
            m = _LEXEMES.match(text, at)
            assert m is not None
            kind, got = m.lastgroup or "BAD", m.group()
            if kind == "BAD":
                raise GrammarError(f"unexpected {got!r} at {self.place(at)}: {self._line(at)}")
            start, at = at, m.end()
            if kind == "P" and got in JSON_KEYWORDS:
                value, at = self._json(got, at)
                self.listed.append(Lexeme(got, got, start, value))
            elif kind != "SKIP":
                self.listed.append(Lexeme(got if kind == "P" else kind, got, start))
        self.listed += [Lexeme("NEWLINE", "\n", len(text)), Lexeme("END", "", len(text))]

    def _json(self, keyword: str, at: int) -> tuple[Any, int]:
        while self.text[at : at + 1].isspace():
            at += 1
        try:
            value, end = _DECODER.raw_decode(self.text, at)
        except ValueError as e:
            what = e.msg if isinstance(e, json.JSONDecodeError) else str(e)
            where = e.pos if isinstance(e, json.JSONDecodeError) else at
            raise GrammarError(f"no JSON behind {keyword}: {what} at {self.place(where)}") from None
        return value, end

    def place(self, offset: int) -> Place:
        """Line and column of an offset, from 1."""
        line = bisect_right(self.lines, offset)
        return Place(line, offset - self.lines[line - 1] + 1)

    def _line(self, offset: int) -> str:
        start = self.text.rfind("\n", 0, offset) + 1
        return self.text[start:].partition("\n")[0].strip()[:100]


def string_value(text: str) -> tuple[str, bool]:
    r"""What a STRING stands for, and whether it ignores case.  Raises GrammarError for half a surrogate pair."""
    body = text.removesuffix("i")
    as_json = _HEX_ESCAPE.sub(lambda m: f"\\u00{m[1]}" if m[1] else m[0], body)
    value = str(json.loads(as_json))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise GrammarError(f"the string {text} has half of a surrogate pair: write both, or the character") from None
    return value, body != text
