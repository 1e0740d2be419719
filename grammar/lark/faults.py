"""What is wrong with a text that is no Lark grammar, in the words of Lark's own parser."""

from __future__ import annotations

from typing import Any

from wfsa.errors import GrammarError

from ..notation.dialects import LARK
from ..notation.lexemes import cut


def lark_fault(text: str, error: GrammarError, place: str) -> GrammarError:
    """Lark's verdict on `text`, which the reader refused with `error`; `place` stands in front."""
    from lark import load_grammar
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    loader: Any = load_grammar  # its functions have no annotations
    plain = without_special(text)
    parser = loader._get_parser()
    try:
        parser.parse(plain + "\n", "start")
    except UnexpectedToken as e:
        try:
            advice = loader._translate_parser_exception(parser.parse, e)  # "Unclosed parenthesis"
        except Exception:  # it fails on some of its own examples (lark 1.3.1: a TypeError)
            advice = None
        where = f"at line {e.line} column {e.column}"
        return GrammarError(place + (f"{advice}, {where}: {_line(text, e.line)}" if advice else _expected(e)))
    except UnexpectedCharacters as e:
        where = f"line {e.line} column {e.column}"
        return GrammarError(f"{place}unexpected input at {where}: {_line(text, e.line)}")
    if plain != text:
        return GrammarError("a token-level terminal (<|name|>, <[ids]>) stands where none is allowed")
    return GrammarError(f"{place}{error}")


def without_special(text: str) -> str:
    """`text` with each token-level terminal replaced by a plain terminal's name of equal length, for Lark to read."""
    lexemes = cut(text, LARK)
    for kind, got, at in zip(lexemes.kinds, lexemes.texts, lexemes.offsets, strict=True):
        if kind == "SPECIAL":
            text = text[:at] + "T" * len(got) + text[at + len(got) :]
    return text


def _line(text: str, number: int) -> str:
    return text.split("\n")[number - 1].strip()[:100] if number <= text.count("\n") + 1 else "end of the grammar"


def _expected(error: Any) -> str:
    what = "end of line" if error.token.type.startswith("_NL") else repr(str(error.token))
    expected = ", ".join(sorted(str(name) for name in error.expected))
    return f"unexpected {what} at line {error.line} column {error.column}; expected one of {expected}"
