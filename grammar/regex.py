r"""Regular expressions, in two dialects, as regular-language trees.

Problem.  A pattern comes from a grammar author (Python/Rust habits) or from a JSON Schema (ECMA-262), and what is
wanted is its language: which texts match from end to end (`parse_regex`), or in which texts it matches somewhere
(`search_language`).  Greed, laziness and captures do not change a language; anchors and look-arounds do.

    "python"   Python's `re` on text, with Rust's additions where they do not clash: ``\d \w \s`` are Unicode, ``.``
               is all but ``\n``, ``$`` also stands before a final ``\n``, ``[[:alpha:]]``, ``\p{..}``, ``\u{..}``
    "ecma"     ECMA-262 with the flag u, plus the escapes and loose braces of its Annex B that cannot be misread:
               ``\d \w`` are ASCII, ``\s`` is the ECMA set, ``.`` excludes the four line ends, ``$`` is the very end

Method.  One pass of recursive descent over the characters, no tokens, no syntax tree: a part without assertions
becomes a `Regular` at once.  Parts with assertions become nodes of :mod:`wfsa.grammar.regex_assertions`, which
compiles them away exactly.  Text is code points; the trees encode them as UTF-8.

Invariant: the result is exactly the language, or GrammarError says what, where (an offset) and what to do.  Refused:
back-references, atomic groups and possessive quantifiers, conditionals, recursion, and readings on which the two
dialects' users would disagree (class set operations, ``{,3}`` in ECMA).
Cost: about a microsecond a character; Unicode tables are built on first use (:mod:`wfsa.grammar.unicode_sets`).
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal as OneOf
from typing import NoReturn

from wfsa.errors import GrammarError
from wfsa.grammar import unicode_sets
from wfsa.grammar.regex_assertions import (
    ANY_TEXT,
    Assertion,
    Choice,
    Loop,
    Node,
    Seq,
    end_of_text,
    is_edge,
    look_core,
    start_of_text,
    whole_language,
)
from wfsa.grammar.regular import (
    ANY_CHAR,
    EPSILON,
    MAX_CODE_POINT,
    NOTHING,
    Literal,
    Ranges,
    Regular,
    alt,
    cat,
    chars,
    negate_ranges,
    normal_ranges,
    repeat,
)

Dialect = OneOf["python", "ecma"]

IGNORE_CASE, MULTILINE, DOT_ALL, VERBOSE, ASCII = 1, 2, 4, 8, 16
_FLAGS = {"i": IGNORE_CASE, "m": MULTILINE, "s": DOT_ALL, "x": VERBOSE, "a": ASCII, "u": 0, "v": 0, "g": 0, "d": 0}
_INLINE_FLAGS = {"i": IGNORE_CASE, "m": MULTILINE, "s": DOT_ALL, "x": VERBOSE, "a": ASCII, "u": 0, "U": 0}
_SPECIAL = frozenset("\\[(.^$*+?{|)")
_SIMPLE_ESCAPES = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11}
_HEX = frozenset("0123456789abcdefABCDEF")
_MAX_DEPTH = 120
_NEWLINE = Literal(b"\n")


def parse_regex(pattern: str, *, dialect: Dialect = "python", flags: str = "") -> Regular:
    """The texts that `pattern` matches from end to end.

    `flags` are letters out of ``imsxau`` (the ECMA letters ``gdv`` are taken and change nothing).
    """
    node = _Parser(pattern, dialect, flags, whole=True).parse()
    if isinstance(node, Regular):
        return node
    edges = _anchored(node)
    return edges[1] if edges else whole_language(node, pattern)


def search_language(pattern: str, dialect: Dialect = "ecma", flags: str = "") -> Regular:
    """The texts in which `pattern` matches somewhere (JSON Schema's ``pattern``); anchors are honoured exactly."""
    node = _Parser(pattern, dialect, flags, whole=False).parse()
    edges = (False, node, False) if isinstance(node, Regular) else _anchored(node)
    if edges:
        left, middle, right = edges
        return cat(EPSILON if left else ANY_TEXT, middle, EPSILON if right else ANY_TEXT)
    return whole_language(Seq((ANY_TEXT, node, ANY_TEXT)), pattern)


def _anchored(node: Node) -> tuple[bool, Regular, bool] | None:
    """The usual case, without the general machinery: (starts with ^, what is between, ends with $)."""
    if not isinstance(node, Seq):
        return None
    items = node.items
    left, right = is_edge(items[0], False), is_edge(items[-1], True)
    middle = [p for p in items[left:len(items) - right] if isinstance(p, Regular)]
    return (left, cat(*middle), right) if len(middle) + left + right == len(items) else None


class _Parser:
    __slots__ = ("at", "depth", "ecma", "end", "flags", "pattern", "whole")

    def __init__(self, pattern: str, dialect: Dialect, flags: str, whole: bool) -> None:
        if dialect not in ("python", "ecma"):
            raise GrammarError(f"unknown regex dialect {dialect!r}; use 'python' or 'ecma'")
        self.pattern = pattern
        self.end = len(pattern)
        self.at = 0
        self.depth = 0
        self.whole = whole  # the pattern has to match the text from end to end
        self.ecma = dialect == "ecma"
        self.flags = 0
        for letter in flags:
            if letter not in _FLAGS:
                raise GrammarError(f"unknown regex flag {letter!r}; known are i, m, s, x, a, u")
            self.flags |= _FLAGS[letter]

    def fail(self, what: str, at: int | None = None, remedy: str = "") -> NoReturn:
        where = self.at if at is None else at
        hint = f"; {remedy}" if remedy else ""
        raise GrammarError(f"{what} at offset {where} of the pattern {self.pattern!r}{hint}")

    def parse(self) -> Node:
        node = self.alternation()
        if self.at < self.end:
            self.fail("unmatched ')'", remedy="write \\) for the character")
        return node

    # ---- structure -----------------------------------------------------------------------------------------------

    def alternation(self) -> Node:
        pattern = self.pattern
        first = self.sequence()
        if self.at >= self.end or pattern[self.at] != "|":
            return first
        parts = [first]
        while self.at < self.end and pattern[self.at] == "|":
            self.at += 1
            parts.append(self.sequence())
        plain = [p for p in parts if isinstance(p, Regular)]
        if len(plain) == len(parts):
            return alt(*plain)
        asserted = tuple(p for p in parts if not isinstance(p, Regular))
        return Choice((alt(*plain), *asserted) if plain else asserted)

    def sequence(self) -> Node:
        pattern, end = self.pattern, self.end
        items: list[Node] = []
        text: list[str] = []  # literal characters not yet in `items`
        plain = True
        while self.at < end:
            c = pattern[self.at]
            start = self.at
            atom: Node | None = None
            if c in _SPECIAL:
                if c == "|" or c == ")":
                    break
                if c == "\\":
                    got = self.escape()
                    if isinstance(got, str):
                        c = got
                    else:
                        atom = got
                elif c == "[":
                    atom = self.char_class()
                elif c == "(":
                    atom = self.group()
                    if atom is None:
                        continue
                elif c == ".":
                    self.at += 1
                    atom = _dot(self.ecma, self.flags & DOT_ALL)
                elif c == "^":
                    self.at += 1
                    atom = self.line_start(start)
                elif c == "$":
                    self.at += 1
                    atom = self.line_end(start)
                elif c == "{":
                    if self.quantifier() is not None:
                        self.fail("nothing to repeat", start, "write \\{ for the character")
                    self.at += 1
                else:
                    self.fail(f"nothing to repeat before {c!r}", start, f"write \\{c} for the character")
            elif self.flags & VERBOSE and (c in " \t\n\r\f\v" or c == "#"):
                self.skip_blanks()
                continue
            else:
                self.at += 1
            if atom is None and self.flags & IGNORE_CASE:
                variants = unicode_sets.case_variants(ord(c))
                if len(variants) > 1:
                    atom = chars((v, v) for v in variants)

            if self.flags & VERBOSE:
                self.skip_blanks()
            if self.at < end and pattern[self.at] in "*+?{":
                counts = self.quantifier()
                if counts is not None:
                    if text:
                        items.append(self.literal(text, start))
                        text = []
                    if atom is None:
                        atom = self.literal([c], start)
                    if isinstance(atom, Regular):
                        items.append(repeat(atom, *counts))
                    else:
                        plain = False
                        items.append(Loop(atom, *counts, start))
                    continue
            if atom is None:
                text.append(c)
                continue
            if text:
                items.append(self.literal(text, start))
                text = []
            if not isinstance(atom, Regular):
                plain = False
            items.append(atom)
        if text:
            items.append(self.literal(text, self.at))
        if len(items) == 1:
            return items[0]
        if plain:
            return cat(*items)  # type: ignore[arg-type]  # all of them are Regular
        return Seq(tuple(items))

    def literal(self, text: list[str], at: int) -> Regular:
        try:
            return Literal("".join(text).encode())
        except UnicodeEncodeError:
            self.fail("a lone surrogate", at, "UTF-8 has no surrogates; write the character itself or \\u{...}")

    def skip_blanks(self) -> None:
        pattern, end = self.pattern, self.end
        while self.at < end:
            c = pattern[self.at]
            if c == "#":
                stop = pattern.find("\n", self.at)
                self.at = end if stop < 0 else stop + 1
            elif c in " \t\n\r\f\v":
                self.at += 1
            else:
                return

    def quantifier(self) -> tuple[int, int | None] | None:
        """The counts of a quantifier here; None (and nothing read) if a brace is only a character."""
        pattern, end, start = self.pattern, self.end, self.at
        c = pattern[start]
        i = start + 1
        if c == "{":
            stop = pattern.find("}", i)
            low_text, comma, high_text = pattern[i:stop].partition(",") if stop > 0 else ("", "", "")
            ok = (low_text or comma) and all(t.isascii() and t.isdigit() for t in (low_text, high_text) if t)
            if not ok or (not low_text and not high_text and self.ecma):
                return None
            if self.ecma and not low_text:
                self.fail("a repetition without a lower bound", start, f"write {{0,{high_text}}}, or escape the brace")
            if len(low_text) > 9 or len(high_text) > 9:
                self.fail("a repetition of more than 999999999 times", start)
            counts = int(low_text or 0), (int(high_text) if high_text else None) if comma else int(low_text)
            if counts[1] is not None and counts[1] < counts[0]:
                self.fail(f"repetition {{{low_text},{high_text}}} with its bounds out of order", start)
            i = stop + 1
        else:
            counts = (1 if c == "+" else 0), (1 if c == "?" else None)
        self.at = i
        if i < end:
            c = pattern[i]
            if c == "?":  # lazy: the same language
                self.at = i + 1
            elif c == "+":
                self.fail("a possessive quantifier", i, "it matches less than the plain one; write the plain one")
            if self.at < end and (pattern[self.at] in "*+?" or (pattern[self.at] == "{" and self._counted_here())):
                self.fail("a quantifier after a quantifier", self.at, "put the inner one in a group, (?:...)")
        return counts

    def _counted_here(self) -> bool:
        stop = self.pattern.find("}", self.at)
        body = self.pattern[self.at + 1:stop] if stop > 0 else ""
        return bool(body) and body != "," and body.replace(",", "", 1).isdigit()

    # ---- groups ----------------------------------------------------------------------------------------------------

    def group(self) -> Node | None:
        """A group or look-around; None for a comment or for flags that hold from here on."""
        pattern, start = self.pattern, self.at
        self.at += 1
        saved = self.flags
        look: tuple[bool, bool] | None = None  # (ahead, negative)
        if pattern.startswith("?", self.at):
            self.at += 1
            rest = pattern[self.at:self.at + 2]
            kind = rest[:1]
            if kind == ":":
                self.at += 1
            elif kind in ("=", "!"):
                look = True, kind == "!"
                self.at += 1
            elif rest in ("<=", "<!"):
                look = False, rest == "<!"
                self.at += 2
            elif kind == "<" or rest == "P<":
                self.at += len(rest) if kind == "P" else 1
                self.group_name(start)
            elif kind == "#":
                stop = pattern.find(")", self.at)
                if stop < 0:
                    self.fail("a comment without its ')'", start)
                self.at = stop + 1
                return None
            elif rest in ("P=", "P>") or kind in ("(", ">", "|", "&", "R", "0"):
                what = {"P=": "a back-reference", "P>": "a recursive call"}.get(rest) or {
                    "(": "a conditional group", ">": "an atomic group", "|": "a branch reset group",
                }.get(kind, "a recursive call")
                self.fail(f"{what} ('(?{rest}')", start, "it denotes no regular language here; write it out")
            elif self.inline_flags(start):
                return None
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail(f"groups nested deeper than {_MAX_DEPTH}", start)
        node = self.alternation()
        self.depth -= 1
        if self.at >= self.end:
            self.fail("a group without its ')'", start, "write \\( for the character")
        self.at += 1
        self.flags = saved
        if look is None:
            return node
        ahead, negative = look
        what = f"the {'negative ' if negative else ''}look-{'ahead' if ahead else 'behind'}"
        core, loose = look_core(node, ahead, pattern)
        return Assertion(ahead, core, loose, negative, what, start)

    def group_name(self, start: int) -> None:
        stop = self.pattern.find(">", self.at)
        name = self.pattern[self.at:stop] if stop > 0 else ""
        if not name or not name.replace(".", "_").replace("$", "_").isidentifier():
            self.fail("a named group without a proper name", start, "write (?<name>...)")
        self.at = stop + 1

    def inline_flags(self, start: int) -> bool:
        """Read ``i-m:`` or ``i-m)``; true if the latter, which holds to the end of the group around it."""
        on, off, minus = 0, 0, False
        while self.at < self.end:
            c = self.pattern[self.at]
            self.at += 1
            if c in ":)":
                self.flags = (self.flags | on) & ~off
                return c == ")"
            if c == "-" and not minus:
                minus = True
            elif c in _INLINE_FLAGS:
                if minus and c == "u":
                    off, on = off, on | ASCII
                elif minus:
                    off |= _INLINE_FLAGS[c]
                else:
                    on |= _INLINE_FLAGS[c]
            else:
                self.fail(f"unknown group syntax '(?{c}'", start, "known flags are i, m, s, x, a, u")
        self.fail("a group without its ')'", start, "write \\( for the character")

    # ---- anchors -----------------------------------------------------------------------------------------------------

    def line_start(self, at: int) -> Node:
        if not self.flags & MULTILINE:
            return start_of_text(at)
        ends = chars(unicode_sets.ECMA_LINE_END) if self.ecma else _NEWLINE
        return Choice((start_of_text(at), Assertion(False, ends, True, False, "^", at)))

    def line_end(self, at: int) -> Node:
        end = end_of_text(at)
        if self.flags & MULTILINE:
            ends = chars(unicode_sets.ECMA_LINE_END) if self.ecma else _NEWLINE
            return Choice((end, Assertion(True, ends, True, False, "$", at)))
        if self.ecma or (self.whole and not self.depth and self.at >= self.end):
            return end
        return Choice((end, Assertion(True, _NEWLINE, False, False, "$", at)))

    def word_boundary(self, negative: bool, at: int) -> Node:
        word = chars(self.shorthand("w"))
        what = "\\B" if negative else "\\b"

        def edge(ahead: bool, outside: bool) -> Assertion:
            return Assertion(ahead, word, True, outside, what, at)

        return Choice(tuple(
            Seq((edge(False, outside), edge(True, outside == negative))) for outside in (False, True)
        ))

    # ---- escapes and classes -----------------------------------------------------------------------------------------

    def shorthand(self, letter: str) -> Ranges:
        r"""The ranges of ``\d``, ``\w``, ``\s`` (lower case)."""
        if not self.ecma and not self.flags & ASCII:
            return unicode_sets.python_class(letter)
        if letter == "d":
            return unicode_sets.ASCII_DIGIT
        if letter == "w":
            return unicode_sets.ASCII_WORD
        return unicode_sets.ECMA_SPACE if self.ecma else unicode_sets.ASCII_SPACE

    def escape(self) -> str | Node:
        """An escape outside a class: a character, or a node."""
        start = self.at
        if start + 1 >= self.end:
            self.fail("a lone backslash", start, "write \\\\ for the character")
        c = self.pattern[start + 1]
        if c in "bB":
            self.at += 2
            return self.word_boundary(c == "B", start)
        if not self.ecma and c in "AzZ":
            self.at += 2
            return start_of_text(start) if c == "A" else end_of_text(start)
        got = self.class_escape(in_class=False)
        if isinstance(got, int):
            return chr(got)
        if self.flags & IGNORE_CASE:
            got = unicode_sets.ignore_case(got)
        return chars(got)

    def class_escape(self, in_class: bool) -> int | Ranges:
        """An escape that stands for a character or a set; `at` is on the backslash."""
        pattern, start = self.pattern, self.at
        if start + 1 >= self.end:
            self.fail("a lone backslash", start, "write \\\\ for the character")
        c = pattern[start + 1]
        self.at = start + 2
        if c in "dws":
            return self.shorthand(c)
        if c in "DWS":
            return negate_ranges(self.shorthand(c.lower()))
        if c in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[c]
        if not c.isalnum():
            return ord(c)
        if c in "xuU":
            return self.hex_escape(c, start)
        if c in "pP":
            return self.property_escape(c == "P", start)
        if c.isascii() and c.isdigit():
            return self.digit_escape(c, start)
        if c == "b" and in_class:
            return 8
        if c == "a" and not self.ecma:
            return 7
        if c == "e":
            return 27
        if c == "c" and self.ecma and pattern[self.at:self.at + 1].isascii() and pattern[self.at:self.at + 1].isalpha():
            self.at += 1
            return ord(pattern[self.at - 1]) & 31
        if c == "k" or c == "g":
            self.fail("a back-reference", start, "it denotes no regular language; write the text out")
        if c == "N" and not self.ecma and pattern.startswith("{", self.at):
            return self.named_character(start)
        if not c.isascii():
            return ord(c)
        self.fail(f"unknown escape \\{c}", start, "escape only characters that are special")

    def hex_escape(self, kind: str, start: int) -> int:
        pattern = self.pattern
        if pattern.startswith("{", self.at) and (kind == "u" or not self.ecma):
            stop = pattern.find("}", self.at)
            digits = pattern[self.at + 1:stop] if stop > 0 else ""
            self.at = stop + 1
        else:
            n = {"x": 2, "u": 4, "U": 8}[kind]
            digits = pattern[self.at:self.at + n]
            self.at += n
            if len(digits) < n:
                digits = ""
        if kind == "U" and self.ecma:
            self.fail("unknown escape \\U", start, "write \\u{...}")
        value = int(digits, 16) if digits and _HEX.issuperset(digits) else -1
        if not 0 <= value <= MAX_CODE_POINT:
            self.fail(f"a bad escape \\{kind}", start, "write \\xHH, \\uHHHH or \\u{H...} up to 10FFFF")
        if 0xD800 <= value <= 0xDBFF and self.ecma and pattern.startswith("\\u", self.at):
            low_digits = pattern[self.at + 2:self.at + 6]
            if len(low_digits) == 4 and _HEX.issuperset(low_digits) and 0xDC00 <= int(low_digits, 16) <= 0xDFFF:
                self.at += 6
                return 0x10000 + ((value - 0xD800) << 10) + int(low_digits, 16) - 0xDC00
        return value

    def digit_escape(self, c: str, start: int) -> int:
        pattern = self.pattern
        if self.ecma:
            if c == "0" and not pattern[self.at:self.at + 1].isdigit():
                return 0
        else:
            n = 2 if c == "0" else 3  # \0, \01, \012 are octal; so are exactly three digits
            digits = c
            while len(digits) < n + (c == "0") and pattern[self.at:self.at + 1] in tuple("01234567"):
                digits += pattern[self.at]
                self.at += 1
            if (c == "0" or len(digits) == 3) and all(d in "01234567" for d in digits) and int(digits, 8) < 256:
                return int(digits, 8)
        if c == "0":
            self.fail("an octal escape", start, "write \\xHH")
        self.fail(f"a back-reference \\{c}", start, "it denotes no regular language; write the text out")

    def property_escape(self, negative: bool, start: int) -> Ranges:
        pattern = self.pattern
        if pattern.startswith("{", self.at):
            stop = pattern.find("}", self.at)
            name = pattern[self.at + 1:stop] if stop > 0 else ""
            self.at = stop + 1
        else:
            name = "" if self.ecma else pattern[self.at:self.at + 1]
            self.at += 1
        if name.startswith("^"):
            negative, name = not negative, name[1:]
        found = unicode_sets.property_ranges(name) if name else None
        if found is None:
            self.fail(
                f"unknown Unicode property {name!r}", start,
                "known are general categories (\\p{Lu}), common scripts (\\p{Script=Greek}) and a few others",
            )
        return negate_ranges(found) if negative else found

    def named_character(self, start: int) -> int:
        stop = self.pattern.find("}", self.at)
        name = self.pattern[self.at + 1:stop] if stop > 0 else ""
        self.at = stop + 1
        try:
            return ord(unicodedata.lookup(name))
        except (KeyError, TypeError):
            self.fail(f"unknown character name {name!r}", start, "write \\uHHHH")

    def char_class(self) -> Regular:
        pattern, end, start = self.pattern, self.end, self.at
        i = start + 1
        negative = pattern.startswith("^", i)
        if negative:
            i += 1
        found: list[tuple[int, int]] = []
        first = not self.ecma  # in Python ] is a character at the start of a class
        while True:
            if i >= end:
                self.fail("a character class without its ']'", start, "write \\[ for the character")
            c = pattern[i]
            if c == "]" and not first:
                break
            first = False
            low: int | Ranges
            if c == "\\":
                self.at = i
                low = self.class_escape(in_class=True)
                i = self.at
            elif c == "[" and not self.ecma and pattern.startswith("[:", i) and pattern.find(":]", i) > 0:
                low, i = self.posix_class(i)
            else:
                if not self.ecma and c in "&-~|" and pattern.startswith(c + c, i) and pattern[i + 2:i + 3] != "]" \
                        and i > start + 1 + negative:
                    self.fail(f"{c + c} in a character class", i, f"write \\{c} for the character")
                low = ord(c)
                i += 1
            if i + 1 < end and pattern[i] == "-" and pattern[i + 1] != "]":
                c = pattern[i + 1]
                self.at = i + 1
                high = self.class_escape(in_class=True) if c == "\\" else ord(c)
                after = self.at if c == "\\" else i + 2
                if isinstance(low, int) and isinstance(high, int):
                    if high < low:
                        self.fail(f"a range {pattern[i - 1:after]!r} with its ends out of order", i - 1)
                    found.append((low, high))
                    i = after
                    continue
                if not self.ecma:
                    self.fail("a range with a class at one end", i, "write \\- for the character")
                i += 1  # Annex B: the hyphen is a character
                found.append((45, 45))
            if isinstance(low, int):
                found.append((low, low))
            else:
                found += low
        self.at = i + 1
        ranges = normal_ranges(found, MAX_CODE_POINT)
        if self.flags & IGNORE_CASE:
            ranges = unicode_sets.ignore_case(ranges)
        if negative:
            return chars(negate_ranges(ranges)) if ranges else ANY_CHAR
        tree = chars(ranges)
        if ranges and tree == NOTHING:
            self.fail("a class of surrogates only", start, "UTF-8 has no surrogates; write \\u{...} for the characters")
        return tree

    def posix_class(self, i: int) -> tuple[Ranges, int]:
        stop = self.pattern.find(":]", i)
        name = self.pattern[i + 2:stop]
        negative = name.startswith("^")
        ranges = unicode_sets.POSIX.get(name.removeprefix("^"))
        if ranges is None:
            self.fail(f"unknown POSIX class [:{name}:]", i, "write \\[ for the character")
        return (negate_ranges(ranges) if negative else ranges), stop + 2


@lru_cache(maxsize=8)
def _dot(ecma: bool, dot_all: int) -> Regular:
    if dot_all:
        return ANY_CHAR
    return chars(negate_ranges(unicode_sets.ECMA_LINE_END if ecma else ((10, 10),)))


__all__ = ["Dialect", "parse_regex", "search_language"]
