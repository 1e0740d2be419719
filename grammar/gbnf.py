r"""GBNF, llama.cpp's grammar notation, with the conveniences of its EBNF cousins.

    root ::= "a" [b-d]+ ( name | . ){2,5}   # comment
    name ::= [a-z] | <think> | <[1000]>

Names are letters, digits, ``-`` and ``_``.  Text and classes are code points (``"\xE9"`` is é, not a byte), encoded as
UTF-8; escapes are ``\n \t \r \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH``.  ``[^...]`` and ``.`` match line ends too.
A quantifier after a quoted text repeats all of it.
``<name>`` is the token spelled so, ``<[id]>`` the token with that id.

Where llama.cpp is strict about line ends this reader is not: a rule ends where the next ``name ::=`` begins, so
alternatives may start a line with ``|``.  More extensions, none of which changes the meaning of a llama.cpp grammar:
``/* comments */``, a ``;`` after a rule, ``'single quotes'``, ``{,n}``,
further escapes (``\0 \a \b \f \v \e \' \/ \- \^ \u{H..}``) and left recursion.
Refused, with line and column: undefined and duplicate rules, empty classes, unknown escapes, negated tokens
(``!<...>``: the set depends on the vocabulary), macros and rule attributes of other dialects.

Method: one pass of recursive descent into :mod:`wfsa.grammar.expressions`; :mod:`wfsa.grammar.fold` then chooses the
terminals.  Cost: about a microsecond a character.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from wfsa.errors import GrammarError

from .allowance import check
from .boundary import Boundary
from .expressions import Choice, Expr, Many, Ref, Seq
from .fold import fold_rules
from .ir import Grammar, Tokens
from .regular import ANY_CHAR, EPSILON, MAX_CODE_POINT, NOTHING, Regular, chars, literal, negate_ranges

_NAMES = re.compile("[a-zA-Z0-9_-]*")
_BLANKS = re.compile("[ \\t\\r\\n]*")
_UNQUOTED = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_HEX = frozenset("0123456789abcdefABCDEF")
_ESCAPES = {
    "n": 10, "t": 9, "r": 13, "\\": 92, '"': 34, "[": 91, "]": 93,
    "0": 0, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27, "'": 39, "/": 47, "-": 45, "^": 94,
}
_HEX_LENGTH = {"x": 2, "u": 4, "U": 8}
_MACROS = frozenset(("Regex", "TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch", "AnyTokens", "Lazy"))
_MAX_DEPTH = 60


@Boundary(GrammarError)
def read_gbnf(text: str, root: str = "root") -> Grammar:
    """The grammar of a GBNF text, starting from the rule `root`."""
    if not isinstance(text, str):
        raise GrammarError(f"a GBNF grammar is a str, not {type(text).__name__}")
    reader = _Reader(text)
    rules = reader.rules()
    if root not in rules:
        known = ", ".join(list(rules)[:8]) or "none"
        raise GrammarError(f"the grammar has no rule {root!r} to start from; it defines {known}")
    for name, at in reader.used.items():
        if name not in rules:
            reader.fail(f"the rule {name!r} is used but not defined", at, f"add '{name} ::= ...'")
    try:
        return fold_rules(rules, root, origins=reader.origins)
    except RecursionError:  # "a++++...": one level for each of the quantifiers
        raise GrammarError("the grammar is nested too deeply: give inner groups names of their own") from None


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a match that begins at `at` ends; for patterns that also match the empty text."""
    found = pattern.match(text, at)
    return found.end() if found else at


class _Reader:
    __slots__ = ("at", "depth", "end", "lines", "origins", "text", "used")

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = len(text)
        self.lines = [0, *(m.end() for m in re.finditer("\n", text))]  # where they begin
        self.at = 0
        self.depth = 0
        self.used: dict[str, int] = {}  # name -> where it is first used
        self.origins: dict[str, str] = {}
        try:
            text.encode()
        except UnicodeEncodeError as err:
            self.fail("a lone surrogate, which no UTF-8 text has,", err.start, "write the character itself")

    def fail(self, what: str, at: int | None = None, remedy: str = "") -> NoReturn:
        hint = f"; {remedy}" if remedy else ""
        raise GrammarError(f"{what} at {self.place(self.at if at is None else at)}{hint}")

    def place(self, at: int) -> str:
        """line:column of an offset, both from 1."""
        line = bisect_right(self.lines, at)
        return f"{line}:{at - self.lines[line - 1] + 1}"

    # ---- rules -------------------------------------------------------------------------------------------------------

    def rules(self) -> dict[str, Expr]:
        out: dict[str, Expr] = {}
        self.skip()
        while self.at < self.end:
            start = self.at
            check()
            name = self.name()
            if not name:
                self.fail(f"expected a rule name, found {self.text[start]!r}", start, "write 'name ::= ...'")
            if name in out:
                self.fail(f"the rule {name!r} is defined again (first at {self.origins[name]})", start,
                          "join the definitions with '|'")
            self.skip()
            if not self.text.startswith("::=", self.at):
                self.fail(f"expected '::=' after the name {name!r}", self.at, "a rule is 'name ::= ...'")
            self.at += 3
            self.origins[name] = self.place(start)
            out[name] = self.alternatives()
            if self.at < self.end and self.text[self.at] == ";":
                self.at += 1
                self.skip()
            elif self.at < self.end and self.text[self.at] == ")":
                self.fail("unmatched ')'", self.at)
        return out

    def skip(self) -> None:
        """Blanks, line ends and comments."""
        text, end = self.text, self.end
        while self.at < end:
            c = text[self.at]
            if c in " \t\r\n":
                self.at = _end(_BLANKS, text, self.at)
            elif c == "#":
                stop = text.find("\n", self.at)
                self.at = end if stop < 0 else stop + 1
            elif c == "/" and text.startswith("/*", self.at):
                stop = text.find("*/", self.at + 2)
                if stop < 0:
                    self.fail("a comment without its '*/'")
                self.at = stop + 2
            else:
                return

    def name(self) -> str:
        start = self.at
        self.at = _end(_NAMES, self.text, start)
        return self.text[start : self.at]

    # ---- expressions -------------------------------------------------------------------------------------------------

    def alternatives(self) -> Expr:
        parts = [self.sequence()]
        while self.at < self.end and self.text[self.at] == "|":
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self) -> Expr:
        text = self.text
        parts: list[Expr] = []
        self.skip()
        while self.at < self.end:
            c = text[self.at]
            start = self.at
            e: Expr
            name = self.name()
            if name:
                self.skip()
                if text.startswith("::=", self.at):  # the next rule
                    self.at = start
                    break
                if name in _MACROS and text.startswith("(", start + len(name)) and f"{name} ::=" not in text:
                    self.fail(f"the macro {name}(...)", start, "only rules, texts, classes and groups are supported")
                self.used.setdefault(name, start)
                e = Ref(name)
            elif c == '"' or c == "'":
                e = self.quoted(c)
            elif c == "[":
                e = self.char_class()
            elif c == "(":
                e = self.group()
            elif c == ".":
                self.at += 1
                e = ANY_CHAR
            elif c == "<":
                e = self.token()
            elif c == "!" and text.startswith("!<", start):
                self.fail("a negated token", start, "it depends on the vocabulary; list the tokens that are allowed")
            elif c in "|);":
                break
            elif c in "*+?{":
                self.fail(f"nothing to repeat before {c!r}", start, f'write "{c}" for the character')
            else:
                self.fail(f"unexpected {c!r}", start, f'write "{c}" for the character')
            self.skip()
            while self.at < self.end and text[self.at] in "*+?{":
                low, high = self.quantifier()
                e = Many(e, low, high)
                self.skip()
            parts.append(e)
        if not parts:
            return EPSILON
        return parts[0] if len(parts) == 1 else Seq(tuple(parts))

    def group(self) -> Expr:
        start = self.at
        self.at += 1
        if self.text.startswith("=", self.at):
            self.fail("a look-ahead (=...)", start, "write the condition into the rules")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail(f"groups nested deeper than {_MAX_DEPTH}", start, "give the inner ones a name")
        e = self.alternatives()
        self.depth -= 1
        if self.at >= self.end or self.text[self.at] != ")":
            self.fail("a group without its ')'", start, 'write "(" for the character')
        self.at += 1
        return e

    def quantifier(self) -> tuple[int, int | None]:
        c = self.text[self.at]
        start = self.at
        self.at += 1
        if c != "{":
            return (1 if c == "+" else 0), (1 if c == "?" else None)
        low = self.count()
        high = low
        if self.text.startswith(",", self.at):
            self.at += 1
            high = self.count()
        elif low is None:
            self.fail("a repetition without counts", start, "write {m}, {m,} or {m,n}")
        if not self.text.startswith("}", self.at):
            self.fail("a repetition without its '}'", start, "write {m}, {m,} or {m,n}")
        self.at += 1
        if high is not None and high < (low or 0):
            self.fail(f"a repetition {{{low},{high}}} with its bounds out of order", start)
        return low or 0, high

    def count(self) -> int | None:
        self.skip()
        start = self.at
        while self.at < self.end and self.text[self.at] in "0123456789":
            self.at += 1
        digits = self.text[start:self.at]
        self.skip()
        if len(digits) > 9:
            self.fail("a repetition of more than 999999999 times", start)
        return int(digits) if digits else None

    # ---- terminals ---------------------------------------------------------------------------------------------------

    def quoted(self, quote: str) -> Regular:
        text, end, start = self.text, self.end, self.at
        out: list[str] = []
        self.at += 1
        while self.at < end:
            c = text[self.at]
            if c == quote:
                self.at += 1
                return literal("".join(out))
            if c == "\\":
                where = self.at
                code = self.escape()
                if 0xD800 <= code <= 0xDFFF:
                    self.fail("a surrogate, which no UTF-8 text has,", where, "write \\UHHHHHHHH for the character")
                out.append(chr(code))
            else:
                where = self.at
                self.at = _end(_UNQUOTED[quote], text, where)
                out.append(text[where : self.at])
        self.fail("a text without its closing quote", start)

    def char_class(self) -> Regular:
        text, end, start = self.text, self.end, self.at
        self.at += 1
        negative = text.startswith("^", self.at)
        if negative:
            self.at += 1
        found: list[tuple[int, int]] = []
        while self.at < end:
            c = text[self.at]
            if c == "]":
                break
            where = self.at
            low = high = self.character()
            if text.startswith("-", self.at) and self.at + 1 < end and text[self.at + 1] != "]":
                self.at += 1
                high = self.character()
                if high < low:
                    self.fail(f"a range {text[where:self.at]!r} with its ends out of order", where)
            found.append((low, high))
        if self.at >= end:
            self.fail("a character class without its ']'", start, 'write "[" for the character')
        self.at += 1
        if not found:
            self.fail("an empty character class", start, "write . for any character" if negative else "")
        tree = chars(negate_ranges(found) if negative else found)
        if tree == NOTHING and not negative:
            self.fail("a class of surrogates only, which no UTF-8 text has,", start, "write \\UHHHHHHHH")
        return tree

    def character(self) -> int:
        c = self.text[self.at]
        if c == "\\":
            return self.escape()
        self.at += 1
        return ord(c)

    def escape(self) -> int:
        text, start = self.text, self.at
        c = text[start + 1:start + 2]
        self.at = start + 2
        if c in _ESCAPES:
            return _ESCAPES[c]
        n = _HEX_LENGTH.get(c)
        if n is None:
            self.fail(f"unknown escape \\{c}", start, "write \\\\ for the backslash")
        if c == "u" and text.startswith("{", self.at):
            stop = text.find("}", self.at)
            digits = text[self.at + 1:stop] if stop > 0 else ""
            self.at = stop + 1
            n = len(digits)
        else:
            digits = text[self.at:self.at + n]
            self.at += n
        value = int(digits, 16) if len(digits) == n and 0 < n <= 8 and _HEX.issuperset(digits) else -1
        if not 0 <= value <= MAX_CODE_POINT:
            self.fail(f"a bad escape \\{c}", start, "write \\xHH, \\uHHHH or \\UHHHHHHHH up to 10FFFF")
        return value

    def token(self) -> Tokens:
        text, start = self.text, self.at
        stop = text.find(">", start)
        inside = text[start + 1:stop] if stop > 0 else ""
        if not inside or "\n" in inside:
            self.fail("a token without its '>'", start, 'write "<" for the character, <name> or <[id]> for a token')
        self.at = stop + 1
        if inside[0] == "[":
            digits = inside[1:-1]
            if inside[-1] != "]" or not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
                self.fail(f"a bad token id <{inside}>", start, "write <[1000]>")
            return Tokens((int(digits),))
        return Tokens(name=f"<{inside}>")
