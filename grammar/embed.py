"""One grammar inside another: its symbols and rules are copied into a builder, and its start is a symbol there.

Only grammars of the policy "cfg" go into each other: under "longest" what competes with a terminal depends on all of
the grammar around it.  What holds for a whole text cannot be part of one, and is refused: a bound on white space, and
items that must differ, since both read the text from its first byte.
"""

from __future__ import annotations

from dataclasses import replace

from wfsa.errors import GrammarError
from wfsa.grammar.ir import Grammar, GrammarBuilder, Unordered
from wfsa.grammar.regex.restrict import nullable
from wfsa.grammar.regular import Regular


def embed(out: GrammarBuilder, grammar: Grammar, origin: str = "") -> int:
    """The symbol of `grammar`'s start in `out`; `origin` stands in front of the places of its symbols.

    Raises GrammarError for a grammar that cannot be part of another.
    """
    if grammar.policy != "cfg" or out.policy != "cfg":
        raise GrammarError("terminals that take the longest match cannot be part of another grammar; write it in EBNF")
    if grammar.white_space is not None or grammar.distinct:
        raise GrammarError("a bound on white space, or items that must differ, cannot be part of a larger grammar")
    terminals = [
        out.terminal(t.pattern, t.name, t.priority, origin + t.origin.removeprefix("$"), t.units)
        for t in grammar.terminals
    ]
    n = len(out.nonterminals)
    for number, name in enumerate(grammar.nonterminals):
        out.nonterminal(name, origin + (grammar.origins[number] if grammar.origins else "").removeprefix("$"))
    for lhs, rhs in grammar.rules:
        out.rules.append((n + lhs, tuple([terminals[s] if s >= 0 else s - n for s in rhs])))
    for u in grammar.unordered:
        out.unordered.append(_moved(u, n))
    return ~(n + grammar.start)


def takes_empty(grammar: Grammar) -> bool:
    """Whether `grammar` derives the empty word."""
    empty: set[int] = set()
    known: dict[int, bool] = {}

    def may_be_empty(s: int) -> bool:
        if s < 0:
            return ~s in empty
        if s not in known:
            pattern = grammar.terminals[s].pattern
            known[s] = isinstance(pattern, Regular) and nullable(pattern)
        return known[s]

    changed = True
    while changed and grammar.start not in empty:
        changed = False
        for lhs, rhs in grammar.rules:
            if lhs not in empty and all(map(may_be_empty, rhs)):
                empty.add(lhs)
                changed = True
    return grammar.start in empty


def _moved(u: Unordered, n: int) -> Unordered:
    return replace(
        u, body=u.body + n, rest=u.rest + n, members=tuple(m + n for m in u.members),
        groups=tuple(tuple(m + n for m in group) for group in u.groups),
    )  # fmt: skip
