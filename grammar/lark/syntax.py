r"""Lark's grammar text -> Lark's parse tree, by recursive descent instead of the package's LALR parser.

Problem.  ``lark.load_grammar`` reads a grammar with Lark itself: a pure-Python LALR parser, a tree builder and a
transformer.  On SQL (219 lines, 1,700 lexemes) these take 17 ms, nearly all of what a lazily compiled constraint
may cost in total (20 ms).

Method.  The syntax of a Lark grammar is LL(1) once it is cut into lexemes, so one regular expression cuts and one
function per production builds the same tree, 5 times faster.  Lark's lexer for grammar files is not contextual: it
takes the first terminal that matches out of a fixed order (`lark.load_grammar.TERMINALS`, sorted by
`lark.lexer.BasicLexer`), and the order below is that order with disjoint terminals merged.  Note that a COMMENT
takes the white space before it, line ends too, which is how a comment between two alternatives works.

Invariants.  This module accepts what Lark accepts and builds an equal tree (`tests/grammar/test_lark_syntax.py`
compares both on every grammar at hand and on mutations of them).  It never reports an error: `parse_statements` returns
None, and the caller lets Lark read the text again and say what is wrong.

One extension, which cannot collide because ``<`` begins no lexeme of Lark's: a token-level terminal, ``<|tool|>`` or
``<[12,40-42]>``, becomes ``value(token('<|tool|>'))``.

    start       children are the statements:
    rule        (rule_modifiers, RULE, template_params, priority, expansions)
    term        (TERMINAL, [NUMBER], expansions)
    expansions  of expansion | alias(expansion, NonTerminal)
    expansion   of expr(atom, op, numbers...) | expansions | maybe(expansions) | value(...)
    value       of Terminal | NonTerminal | literal(Token) | range(Token, Token) | template_usage(...) | token(str)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from lark.grammar import NonTerminal, Terminal
from lark.lexer import Token
from lark.tree import SlottedTree

from ..allowance import check

Tree = SlottedTree

# Group name = kind of lexeme; P is punctuation, whose kind is its own text; BAD is anything else.
_LEXEMES = re.compile(
    r"""(?P<REGEXP>/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
      | (?P<STRING>"(?:\\"|\\\\|[^"\n])*?"i?)
      | (?P<SKIP>\s*//[^\n]*|\s*\#[^\n]*)
      | (?P<RULE>_?[a-z][_a-z0-9]*)
      | (?P<TERMINAL>_?[A-Z][_A-Z0-9]*)
      | (?P<OR>(?:\r?\n)+\s*\||\|)
      | (?P<NL>(?:\r?\n)+\s*)
      | (?P<SKIP2>\\[ ]*\n|[ \t]+)
      | (?P<NUMBER>[+-]?\d+)
      | (?P<P>%override|%declare|%extend|%ignore|%import|\.\.|->|[][{}():,~.])
      | (?P<OP>[+*]|[?](?![a-z_]))
      | (?P<RULE_MODIFIERS>(?:!\??|\?!?)(?=[_a-z]))
      | (?P<SPECIAL><[^<>\s]+>)
      | (?P<BAD>[\s\S])""",
    re.VERBOSE,
)


@lru_cache(maxsize=1)
def lexemes(text: str) -> tuple[Sequence[str], Sequence[str], Sequence[int]]:
    """Kinds, texts and offsets of the lexemes of `text`, ended by an END; kept for who asks next for the same."""
    kinds: list[str] = []
    texts: list[str] = []
    offsets: list[int] = []
    for m in _LEXEMES.finditer(text):
        if not len(kinds) & 0xFF:
            check()
        kind = m.lastgroup
        if kind == "SKIP" or kind == "SKIP2":
            continue
        got = m.group()
        kinds.append(got if kind == "P" else kind or "BAD")
        texts.append(got)
        offsets.append(m.start())
    kinds.append("END")
    texts.append("")
    offsets.append(len(text))
    return kinds, texts, offsets


def without_special(text: str) -> str:
    """`text` with each token-level terminal replaced by a plain terminal's name of equal length, for Lark to read."""
    kinds, texts, offsets = lexemes(text + "\n")
    for kind, got, at in zip(kinds, texts, offsets, strict=True):
        if kind == "SPECIAL":
            text = text[:at] + "T" * len(got) + text[at + len(got) :]
    return text


class _Refused(Exception):
    """The text is not a grammar; Lark will say why."""


class _Reader:
    __slots__ = ("at", "kinds", "line", "line_from", "literals", "offsets", "text", "texts")

    def __init__(self, text: str) -> None:
        self.text = text
        self.kinds, self.texts, self.offsets = lexemes(text)
        self.at = 0
        self.line = 1
        self.line_from = 0  # offset up to which line ends have been counted
        self.literals: dict[str, Tree] = {}  # equal literals share a node: nobody changes it

    # -- lexemes -------------------------------------------------------------------------------------------------

    def take(self, kind: str) -> str:
        if self.kinds[self.at] != kind:
            raise _Refused
        self.at += 1
        return self.texts[self.at - 1]

    def accept(self, kind: str) -> bool:
        if self.kinds[self.at] == kind:
            self.at += 1
            return True
        return False

    def token(self, kind: str) -> Token:
        """The lexeme here as Lark's Token, with its line."""
        at = self.at
        got = self.take(kind)
        offset = self.offsets[at]
        self.line += self.text.count("\n", self.line_from, offset)
        self.line_from = offset
        return Token(kind, got, offset, self.line)

    def name(self) -> Token:
        return self.token("TERMINAL" if self.kinds[self.at] == "TERMINAL" else "RULE")

    # -- statements ----------------------------------------------------------------------------------------------

    def start(self) -> Tree:
        out: list[Any] = []
        while True:
            kind = self.kinds[self.at]
            if kind == "NL":
                self.at += 1
            elif kind == "END":
                return SlottedTree("start", out)
            else:
                out.append(self.statement(kind))

    def statement(self, kind: str) -> Tree:
        if kind == "RULE" or kind == "RULE_MODIFIERS" or kind == "TERMINAL":
            return self.definition()
        self.at += 1
        if kind == "%ignore":
            expansions = self.expansions()
            self.take("NL")
            return SlottedTree("ignore", [expansions])
        if kind == "%override" or kind == "%extend":
            return SlottedTree(kind[1:], [self.definition()])
        if kind == "%declare":
            symbols = [self.symbol(self.name())]
            while not self.accept("NL"):
                symbols.append(self.symbol(self.name()))
            return SlottedTree("declare", symbols)
        if kind == "%import":
            return self.import_()
        raise _Refused

    def definition(self) -> Tree:
        check()
        children: list[Any]
        if self.kinds[self.at] == "TERMINAL":
            data, children = "term", [self.token("TERMINAL")]
            if self.accept("."):
                children.append(self.token("NUMBER"))
        else:
            data = "rule"
            modifiers: list[Any] = [self.token("RULE_MODIFIERS")] if self.kinds[self.at] == "RULE_MODIFIERS" else []
            name = self.token("RULE")
            params = self.separated("{", lambda: self.token("RULE"), "}") if self.kinds[self.at] == "{" else []
            priority: list[Any] = [self.token("NUMBER")] if self.accept(".") else []
            children = [
                SlottedTree("rule_modifiers", modifiers),
                name,
                SlottedTree("template_params", params),
                SlottedTree("priority", priority),
            ]
        self.take(":")
        children.append(self.expansions())
        self.take("NL")
        return SlottedTree(data, children)

    def import_(self) -> Tree:
        data = "import_rel" if self.accept(".") else "import_lib"
        path: list[Any] = [self.name()]
        while self.accept("."):
            path.append(self.name())
        children: list[Any] = [SlottedTree(data, path)]
        if self.kinds[self.at] == "(":
            children.append(SlottedTree("name_list", self.separated("(", self.name, ")")))
        elif self.accept("->"):
            children.append(self.name())
        self.take("NL")
        return SlottedTree("import", children)

    def separated(self, left: str, item: Callable[[], Any], right: str) -> list[Any]:
        self.take(left)
        out = [item()]
        while self.accept(","):
            out.append(item())
        self.take(right)
        return out

    # -- right-hand sides ----------------------------------------------------------------------------------------

    def expansions(self) -> Tree:
        out: list[Any] = [self.alias()]
        while self.accept("OR"):
            out.append(self.alias())
        return SlottedTree("expansions", out)

    def alias(self) -> Tree:
        kinds, texts = self.kinds, self.texts
        out: list[Any] = []
        while True:
            kind = kinds[self.at]
            if kind == "RULE" or kind == "STRING" or kind == "TERMINAL" or kind == "REGEXP" or kind == "SPECIAL":
                node = self.value(kind)
            elif kind == "(":
                self.at += 1
                node = self.expansions()
                self.take(")")
            elif kind == "[":
                self.at += 1
                node = SlottedTree("maybe", [self.expansions()])
                self.take("]")
            else:
                break
            kind = kinds[self.at]
            if kind == "OP":
                node = SlottedTree("expr", [node, Token("OP", texts[self.at])])
                self.at += 1
            elif kind == "~":
                self.at += 1
                children = [node, Token("TILDE", "~"), Token("NUMBER", self.take("NUMBER"))]
                if self.accept(".."):
                    children.append(Token("NUMBER", self.take("NUMBER")))
                node = SlottedTree("expr", children)
            out.append(node)
        expansion: Tree = SlottedTree("expansion", out)
        if kind == "->":
            self.at += 1
            return SlottedTree("alias", [expansion, NonTerminal(self.take("RULE"))])
        return expansion

    @staticmethod
    def symbol(name: Token) -> Any:
        if name.type == "TERMINAL":
            return Terminal(name.value, filter_out=name.startswith("_"))
        return NonTerminal(name.value)

    def value(self, kind: str) -> Tree:
        got = self.texts[self.at]
        self.at += 1
        child: Any
        if kind == "RULE":
            child = NonTerminal(got)
            if self.kinds[self.at] == "{":
                args = self.separated("{", lambda: self.value(self.kinds[self.at]), "}")
                child = SlottedTree("template_usage", [child, *args])
        elif kind == "TERMINAL":
            child = Terminal(got, filter_out=got[0] == "_")
        elif kind == "STRING" and self.kinds[self.at] == "..":
            self.at += 1
            child = SlottedTree("range", [Token("STRING", got), Token("STRING", self.take("STRING"))])
        elif kind == "STRING" or kind == "REGEXP":
            child = self.literals.get(got)
            if child is None:
                child = self.literals[got] = SlottedTree("literal", [Token(kind, got)])
        elif kind == "SPECIAL":
            child = SlottedTree("token", [got])
        else:
            raise _Refused
        return SlottedTree("value", [child])


def parse_statements(text: str) -> Tree | None:
    """The tree that Lark builds for the grammar `text`, or None where this reader finds a fault in it."""
    try:
        return _Reader(text + "\n").start()
    except _Refused:
        return None
