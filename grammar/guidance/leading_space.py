"""A grammar without the white space that its sentences may begin with.

A JSON document may have white space in front of it, as it may in front of every lexeme of it; a document inside a
grammar has none there.

Method.  Next to every nonterminal N that a sentence may begin with stands S(N), the words of N that are not empty and
do not begin with white space: of a rule ``N -> x y`` it has ``S(x) y``, and if x may be empty ``S(y)``, too.  Of a
terminal S is an intersection.  Cost: one copy of the rules on the left edge.
"""

from __future__ import annotations

from dataclasses import replace

from ..allowance import check
from ..inline import empty_symbols, uncounted
from ..ir import Grammar, Terminal, Tokens
from ..regex.restrict import nullable
from ..regular import ByteSet, Cat, both, cat, has_units, negate_ranges, star

_WHITE_SPACE = ((9, 10), (13, 13), (32, 32))
_NO_SPACE_FIRST = cat(ByteSet(negate_ranges(_WHITE_SPACE, 255)), star(ByteSet(((0, 255),))))


def without_leading_space(grammar: Grammar) -> Grammar:
    """The sentences of `grammar` that are not empty and do not begin with white space."""
    return _Edge(grammar).run()


class _Edge:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.rules_of: dict[int, list[tuple[int, ...]]] = {}
        for lhs, rhs in grammar.rules:
            self.rules_of.setdefault(lhs, []).append(rhs)
        self.empty = empty_symbols(grammar)
        self.terminals = list(grammar.terminals)
        self.nonterminals = list(grammar.nonterminals)
        self.origins = list(grammar.origins)
        self.rules = list(grammar.rules)
        self.distinct = list(grammar.distinct)
        self.known: dict[int, int] = {}  # symbol -> its S
        self.todo: list[int] = []

    def run(self) -> Grammar:
        start = self.first(~self.grammar.start)
        while self.todo:
            check()
            n = self.todo.pop()
            new = ~self.known[~n]
            before = len(self.rules)
            for rhs in self.rules_of.get(n, ()):
                for i, s in enumerate(rhs):
                    self.rules.append((new, (self.first(s), *rhs[i + 1 :])))
                    if s not in self.empty:
                        break
            if len(self.rules) == before:  # N is empty at most: S(N) derives nothing, which takes a rule to say
                self.rules.append((new, (~new,)))
        return replace(
            self.grammar, terminals=tuple(self.terminals), nonterminals=tuple(self.nonterminals),
            origins=tuple(self.origins), rules=tuple(self.rules), distinct=tuple(self.distinct), start=~start,
        )  # fmt: skip

    def first(self, symbol: int) -> int:
        """S of a symbol."""
        got = self.known.get(symbol)
        if got is None:
            got = self.known[symbol] = self._terminal(symbol) if symbol >= 0 else self._nonterminal(~symbol)
        return got

    def _terminal(self, number: int) -> int:
        t: Terminal = self.terminals[number]
        if isinstance(t.pattern, Tokens):
            return number
        self.terminals.append(_restricted(t))
        return len(self.terminals) - 1

    def _nonterminal(self, n: int) -> int:
        self.nonterminals.append(self.nonterminals[n])
        if self.origins:
            self.origins.append(self.origins[n])
        new = len(self.nonterminals) - 1
        self.distinct += [(new, few) for m, few in self.grammar.distinct if m == n]
        self.todo.append(n)
        return ~new


def _restricted(t: Terminal) -> Terminal:
    """The words of a terminal of bytes that are not empty and do not begin with white space."""
    if t.units is not None and isinstance(t.pattern, Cat):
        parts = t.pattern.parts
        i = next(i for i, part in enumerate(parts) if has_units(part))
        before = cat(*parts[:i])
        if not nullable(before):  # then what is counted can stay a part of the whole
            return replace(t, pattern=cat(both(before, _NO_SPACE_FIRST), *parts[i:]))
    return replace(t, pattern=both(uncounted(t), _NO_SPACE_FIRST), units=None)
