r"""Who wins when two terminals of a Lark grammar match the same text: names and order.

Problem.  Lark's lexer tries terminals in an order that it computes; the IR has one rule for ties: the higher
priority, then the lower term_id.  So terminals are numbered such that the IR's rule gives Lark's verdict.

The order (lark 1.3.1, lark/lexer.py):

1.  `BasicLexer.__init__` sorts by ``(-priority, -max_width, -len(pattern.value), name)``; the first that matches wins.
2.  `_create_unless`: where a string S and a regex R have equal priority and R matches the text of S as written, an
    R-token whose text S matches becomes S.  So S wins over R whatever their widths.  When S ignores case
    (``"select"i``) this hangs on its text as written: R = ``/[a-z]+/`` swallows ``"select"i`` but not ``"SELECT"i``.

So per priority: strings first, by (1), then regexes, by (1).  A string without flags that R does not match never ties
with R.  What is left are pairs of an S that ignores case and an R that matches only another spelling of it: there R
wins if its key in (1) is lower, so S goes behind R.  R can only tell spellings apart if it tells cases apart, which
most do not, and which is seen without any matching (`_tells_cases_apart`).  S still goes before the regexes that it
beats, and a regex before the later ones that it may share words with (`_arranged`); regexes without a common first
byte may change places.

Lark's relation can have cycles (S beats R1 as written, R1 beats R2 by width, R2 beats S by spelling: who wins depends
on who else may stand there; or NAME: /[a-z]+/, WORD: /[A-Z]+/, "ELSE"i, "then"i).  No order can express one, and the
first string of it stays in front.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import groupby
from operator import and_, or_
from typing import Final, NamedTuple
from unicodedata import category

from ..notation.nodes import Alternatives, Atom, CharRange, Literal, Maybe, Name
from ..regular import Alt, And, ByteSet, Cat, Chars, Minus, Regular, Repeat
from ..regular import Literal as LiteralBytes
from .definitions import Part
from .terminals import Pattern, is_nullable, literal_pattern, range_pattern, regular, width

# Terminals that are one of these texts, and how Lark calls them.
_NAMES: Final = dict(zip(
    [*r'''.,:;+-*/\|?!@#$%^&_<>="'`~(){}[]''', "\n", "\r\n", "\t", " "],
    (
        "DOT", "COMMA", "COLON", "SEMICOLON", "PLUS", "MINUS", "STAR", "SLASH", "BACKSLASH", "VBAR", "QMARK",
        "BANG", "AT", "HASH", "DOLLAR", "PERCENT", "CIRCUMFLEX", "AMPERSAND", "UNDERSCORE", "LESSTHAN",
        "MORETHAN", "EQUAL", "DBLQUOTE", "QUOTE", "BACKQUOTE", "TILDE", "LPAR", "RPAR", "LBRACE", "RBRACE",
        "LSQB", "RSQB", "NEWLINE", "CRLF", "TAB", "SPACE",
    ),
    strict=True,
))  # fmt: skip
_ID_START: Final = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Pc"))
_ID_CONTINUE: Final = _ID_START | {"Nd", "Nl"}


class Names:
    """Names for anonymous terminals, as `PrepareAnonTerminals` in lark/load_grammar.py gives them."""

    def __init__(self, defined: Mapping[str, Pattern]) -> None:
        self.patterns = dict(defined)  # by name
        self.by_pattern = {pattern: name for name, pattern in defined.items()}  # of equal ones, the last counts
        self.count = 0

    def name(self, pattern: Pattern) -> str:
        """The name of the terminal for a literal in a rule; equal patterns share it, and a defined one has it."""
        got = self.by_pattern.get(pattern)
        if got is not None:
            return got
        name = None
        if pattern.is_str:
            name = _NAMES.get(pattern.value)
            if name is None and _is_identifier(pattern.value):
                name = pattern.value.upper()
        if name is None or name in self.patterns:
            name = f"__ANON_{self.count}"
            self.count += 1
        self.patterns[name] = pattern
        self.by_pattern[pattern] = name
        return name


    def name_literals(self, parts: Sequence[Part]) -> None:
        """Name the literals of a rule in Lark's order, since names can break ties: the deepest first, left to right.

        (`Tree.iter_subtrees` on trees without their ``value`` nodes.)
        """
        main = parts[-1].tree
        found = [pair for tree, _ in parts for pair in _literals(tree, int(tree is not main))]
        for _, pattern in sorted(found, key=lambda pair: -pair[0]):
            self.name(pattern)

    def of_literal(self, atom: Literal | CharRange) -> str:
        """The name of a literal, which has been named."""
        return self.by_pattern[_pattern(atom)]


def _literals(atom: Atom, depth: int) -> Iterator[tuple[int, Pattern]]:
    """The literals in an atom, with their depths in Lark's tree of it."""
    match atom:
        case Alternatives(options):
            for option in options:
                for item in option.conjuncts[0]:
                    yield from _literals(item.atom, depth + 2 + option.has_alias + bool(item.written))
        case Maybe(body):
            yield from _literals(body, depth + 1)
        case Name(arguments=arguments):
            for argument in arguments:
                yield from _literals(argument, depth + 1)
        case Literal() | CharRange():
            yield depth, _pattern(atom)


def _pattern(atom: Literal | CharRange) -> Pattern:
    return literal_pattern(atom.written) if isinstance(atom, Literal) else range_pattern(atom.first, atom.last)


def _is_identifier(text: str) -> bool:
    if text.isascii():
        return text.isidentifier()
    return category(text[0]) in _ID_START and all(category(c) in _ID_CONTINUE for c in text)


class Candidate(NamedTuple):
    name: str
    pattern: Pattern
    regular: Regular
    priority: int


def in_order(terminals: list[Candidate]) -> list[Candidate]:
    """Sorted so that, at equal length, the first one wins (see the module's header)."""
    out = sorted(terminals, key=lambda t: (-t.priority, not t.pattern.is_str, _key(t)))
    regexes = [t for t in out if not t.pattern.is_str]
    selective = [t for t in regexes if _traits(t.pattern)[1]]
    before: dict[str, list[str]] = {}  # S -> the regexes that beat it
    for s in out:
        if not s.pattern.is_str or "i" not in s.pattern.flags or not regexes:
            continue
        spelled = [frozenset({c, *_variants(c)}) for c in s.pattern.value]
        before[s.name] = [
            r.name
            for r in (selective if s.pattern.value.isascii() else regexes)
            if r.priority == s.priority and _key(r) < _key(s)
            if _matches(r.regular, spelled) and not _matches(r.regular, _written(s))
        ]
    if not any(before.values()):
        return out
    return [t for _, same in groupby(out, key=lambda t: t.priority) for t in _arranged(list(same), before)]


def _arranged(terminals: list[Candidate], before: dict[str, list[str]]) -> list[Candidate]:
    """Terminals of one priority, in order but for the strings that go behind the regexes that beat them."""
    waits: dict[str, set[str]] = {t.name: set(before.get(t.name, ())) for t in terminals}
    behind = [t for t in terminals if waits[t.name]]
    regexes = [t for t in terminals if not t.pattern.is_str]
    for i, r in enumerate(regexes):
        waits[r.name] |= {q.name for q in regexes[:i] if q.regular is r.regular or _may_share_words(q, r)}
        waits[r.name] |= {s.name for s in behind if r.name not in waits[s.name] and _matches(r.regular, _written(s))}
    out: list[Candidate] = []
    left = list(terminals)
    while left:
        # Where all wait for each other, the relation is not transitive, and the first string stays in front.
        t = next((t for t in left if not waits[t.name]), left[0])
        left.remove(t)
        out.append(t)
        for w in waits.values():
            w.discard(t.name)
    return out


def _key(t: Candidate) -> tuple[int, int, str]:
    """Lark's key of sorting, within one priority."""
    return (-_traits(t.pattern)[0], -len(t.pattern.value), t.name)


def _written(t: Candidate) -> list[frozenset[str]]:
    return [frozenset({c}) for c in t.pattern.value]


def _may_share_words(a: Candidate, b: Candidate) -> bool:
    """Whether the languages may intersect: they do not if no first byte is common."""
    return bool(_first(a.regular) & _first(b.regular))


def _first(r: Regular) -> int:
    """The first bytes of words, as a bit set; 128 stands for all that are not ASCII."""
    match r:
        case LiteralBytes(data):
            return 1 << min(data[0], 128) if data else 0
        case Chars(ranges) | ByteSet(ranges):
            out = 0
            for lo, hi in ranges:
                out |= (2 << min(hi, 128)) - (1 << min(lo, 128))
            return out
        case Cat(parts):
            out = 0
            for p in parts:
                out |= _first(p)
                if not is_nullable(p):
                    break
            return out
        case Alt(parts):
            return reduce(or_, map(_first, parts), 0)
        case And(parts):
            return reduce(and_, map(_first, parts))
        case Repeat(body, _, _):
            return _first(body)
        case Minus(left, _):
            return _first(left)
    return (2 << 128) - 1


@lru_cache(maxsize=4096)
def _traits(pattern: Pattern) -> tuple[int, bool]:
    """Of the pattern's language: the greatest width, and whether it tells cases apart."""
    return width(pattern), not pattern.flags if pattern.is_str else _tells_cases_apart(regular(pattern))


def _variants(c: str) -> set[str]:
    return {v for v in (c.lower(), c.upper()) if len(v) == 1}


def _tells_cases_apart(r: Regular) -> bool:
    """Whether a node treats an ASCII letter and its other case differently."""
    match r:
        case LiteralBytes(data):
            return any(65 <= b <= 90 or 97 <= b <= 122 for b in data)
        case Chars(ranges) | ByteSet(ranges):
            inside = 0  # bit c: the code c is in
            for lo, hi in ranges:
                if lo <= 122 and hi >= 65:
                    inside |= (2 << min(hi, 127)) - (1 << lo)
            return (inside >> 65 ^ inside >> 97) & 0x3FFFFFF != 0
        case Alt(parts):  # [a-z]|[A-Z] and e|E do not, though their parts do
            single = [(p.data[0],) * 2 for p in parts if isinstance(p, LiteralBytes) and len(p.data) == 1]
            ranges = tuple(r for p in parts if isinstance(p, Chars) for r in p.ranges)
            return _tells_cases_apart(Chars((*single, *ranges))) or any(
                _tells_cases_apart(p)
                for p in parts
                if not isinstance(p, Chars) and not (isinstance(p, LiteralBytes) and len(p.data) == 1)
            )
        case Cat(parts) | And(parts):
            return any(_tells_cases_apart(p) for p in parts)
        case Repeat(body, _, _):
            return _tells_cases_apart(body)
        case Minus(left, right):
            return _tells_cases_apart(left) or _tells_cases_apart(right)
    return True


def _matches(r: Regular, text: list[frozenset[str]]) -> bool:
    """Whether some spelling of `text`, a set of characters per place, is a word.

    Exact, but for an And or Minus where there are several spellings: then "yes" may be wrong.
    """
    one_spelling = all(len(c) == 1 for c in text)
    memo: dict[tuple[int, int], frozenset[int]] = {}

    def ends(r: Regular, at: int) -> frozenset[int]:
        got = memo.get((id(r), at))
        if got is None:
            got = memo[id(r), at] = frozenset(_ends(r, at))
        return got

    def _ends(r: Regular, at: int) -> set[int]:
        match r:
            case LiteralBytes(data):
                word = data.decode("utf-8", "replace")
                fits = all(at + i < len(text) and c in text[at + i] for i, c in enumerate(word))
                return {at + len(word)} if fits else set()
            case Chars(ranges):
                if at < len(text) and any(lo <= ord(c) <= hi for c in text[at] for lo, hi in ranges):
                    return {at + 1}
            case Cat(parts):
                places = {at}
                for p in parts:
                    places = {e for place in places for e in ends(p, place)}
                return places
            case Alt(parts):
                return {e for p in parts for e in ends(p, at)}
            case And(parts):
                return set.intersection(*(set(ends(p, at)) for p in parts))
            case Minus(left, right):
                return set(ends(left, at)) - (set(ends(right, at)) if one_spelling else set())
            case Repeat(body, low, high):
                places, out, n = {at}, {at} if low == 0 else set(), 0
                # Past len(text) rounds nothing new is found: a round either moves on or matches the empty word.
                while places and (high is None or n < high) and n <= max(low, len(text)):
                    places = {e for place in places for e in ends(body, place)}
                    n += 1
                    if n >= low:
                        out |= places
                return out
        return set()

    return len(text) in ends(r, 0)
