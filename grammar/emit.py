"""Rules over expressions as IR rules.

Problem.  The IR knows sequences of symbols; expressions also have alternatives inside sequences, and repetitions.

Method.  Alternatives inside become helper nonterminals.  An unbounded loop is a left-recursive helper
``L -> ε | L x``, so that its turns leave nothing on the parser's stack.  A counted one is built from powers of two,

    P1 = x   P2 = P1 P1   P4 = P2 P2 ...         U(m) = U(p-1) | Pp U(m-p)      p the power with p <= m < 2p

where U(m) is "0 to m times": unambiguous if x is, and O(log² m) rules.  (A chain U(m) -> U(m-1) x has m rules, and as
many unit reductions between two texts.)  Equal helpers are shared.

Invariant: the nonterminal of a rule derives exactly what the rule's expression denotes.
Cost: linear in the expressions, times log² of the counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from .expressions import Choice, Expr, Inline, Lexeme, Many, Ref, Seq, derives_empty, nullable_rules
from .inline import inlined
from .ir import Grammar, GrammarBuilder, Policy, Ties, Tokens
from .regular import EPSILON, Regular


def emit_rules(
    table: Mapping[str, Expr], start: str, origins: Mapping[str, str], policy: Policy = "cfg", ties: Ties = "first"
) -> Grammar:
    """The grammar of the rules in `table`.  Raises GrammarError for a grammar that cannot be inside another."""
    return _Emitter(table, origins, GrammarBuilder(policy, ties)).run(start)


class _Emitter:
    """Writes the folded rules as IR rules; equal helpers are shared."""

    def __init__(self, table: Mapping[str, Expr], origins: Mapping[str, str], out: GrammarBuilder) -> None:
        self.table = table
        self.origins = origins
        self.out = out
        self.names: dict[str, int] = {}
        self.shared: dict[Expr, int] = {}
        self.counted: dict[tuple[str, Expr, int], int] = {}
        self.owner = ""  # the rule being written, for the names of helpers and terminals
        self.empty: set[str] = set()

    def run(self, start: str) -> Grammar:
        self.empty = nullable_rules(self.table)
        for name in self.table:
            self.names[name] = self.out.nonterminal(name, self.origins.get(name, ""))
        for name, e in self.table.items():
            self.owner = name
            self.alternatives(self.names[name], e)
        grammar = self.out.build(self.names[start])
        grammar.check_invariants()
        return grammar

    def alternatives(self, lhs: int, e: Expr) -> None:
        for p in e.parts if isinstance(e, Choice) else (e,):
            self.out.rule(lhs, self.word(p))

    def word(self, e: Expr) -> tuple[int, ...]:
        """The symbols that spell `e` in a right-hand side."""
        if isinstance(e, Seq):
            return tuple(s for p in e.parts for s in self.word(p))
        if e == EPSILON:
            return ()
        if isinstance(e, Many):
            return self.loop(e)
        return (self.symbol(e),)

    def symbol(self, e: Expr) -> int:
        match e:
            case Ref(name):
                return self.names[name]
            case Regular() | Tokens():
                return self.out.terminal(e, origin=self.origins.get(self.owner, "") or self.owner)
            case Lexeme(pattern, name, match):
                return self.out.terminal(pattern, name, 0, self.origins.get(self.owner, ""), match)
        got = self.shared.get(e)
        if got is None:
            if isinstance(e, Inline):
                got = self.shared[e] = inlined(e.grammar, self.out, e.origin)
            else:
                got = self.shared[e] = self.helper()
                self.alternatives(got, e)
        return got

    def helper(self) -> int:
        return self.out.nonterminal(f"{self.owner}~{len(self.out.nonterminals)}", self.origins.get(self.owner, ""))

    # -- loops --

    def loop(self, e: Many) -> tuple[int, ...]:
        body, low, high = e.body, e.low, e.high
        if derives_empty(body, self.empty):
            low = 0
        head = self.exactly(body, low)
        if high is None:
            if low:
                # x^low, then more of x: one helper that begins with the required ones.
                key = ("from", body, low)
                got = self.counted.get(key)
                if got is None:
                    got = self.counted[key] = self.helper()
                    self.out.rule(got, head)
                    self.out.rule(got, (got, *self.word(body)))
                return (got,)
            return (self.star(body),)
        return (*head, *self.up_to(body, high - low))

    def star(self, body: Expr) -> int:
        key = ("star", body, 0)
        got = self.counted.get(key)
        if got is None:
            got = self.counted[key] = self.helper()
            self.out.rule(got, ())
            for p in body.parts if isinstance(body, Choice) else (body,):
                self.out.rule(got, (got, *self.word(p)))
        return got

    def exactly(self, body: Expr, n: int) -> tuple[int, ...]:
        out: list[int] = []
        power = 1
        while n:
            if n & 1:
                out[:0] = self.power(body, power)
            n >>= 1
            power *= 2
        return tuple(out)

    def power(self, body: Expr, n: int) -> tuple[int, ...]:
        """`body` n times, n a power of two."""
        if n == 1:
            return self.word(body)
        key = ("power", body, n)
        got = self.counted.get(key)
        if got is None:
            half = self.power(body, n // 2)
            got = self.counted[key] = self.helper()
            self.out.rule(got, half + half)
        return (got,)

    def up_to(self, body: Expr, n: int) -> tuple[int, ...]:
        """`body` 0 to n times."""
        if n == 0:
            return ()
        key = ("upto", body, n)
        got = self.counted.get(key)
        if got is None:
            p = 1 << (n.bit_length() - 1)
            fewer = self.up_to(body, p - 1)
            more = (*self.power(body, p), *self.up_to(body, n - p))
            got = self.counted[key] = self.helper()
            self.out.rule(got, fewer)
            self.out.rule(got, more)
        return (got,)
