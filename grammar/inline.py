"""A grammar inside another one, whose terminals compete for the longest match.

Problem.  A grammar of the policy "cfg" (a JSON Schema's) counts every way of cutting the text into terminals; the
grammar around it takes the longest terminal.

Method.  Its rules are copied.  Its terminals end wherever they match (`Match` "any"), so that inside it every cut still
counts, and none of them takes text from the grammar around, or gives way to it.  A counted terminal, which only "cfg"
knows, becomes a repetition.

Invariant: the symbol derives exactly the sentences of the grammar.
"""

from __future__ import annotations

from wfsa.errors import GrammarError
from wfsa.grammar.allowance import check
from wfsa.grammar.ir import Grammar, GrammarBuilder, Terminal, Tokens
from wfsa.grammar.regular import Cat, Regular, Repeat, Unit, cat, repeat


def inlined(grammar: Grammar, out: GrammarBuilder) -> int:
    """The symbol in `out` that derives the sentences of `grammar`.

    Raises GrammarError where the grammar needs what only a grammar by itself has.
    """
    for what, there in (
        ("items that must differ (uniqueItems)", grammar.distinct),
        ("members in any order", grammar.unordered),
        ("a bound on white space", grammar.white_space),
        ("ignored terminals", grammar.ignore),
    ):
        if there:
            raise GrammarError(f"a grammar with {what} cannot stand inside another: drop that, or compile it alone")
    terminals = []
    for t in grammar.terminals:
        check()
        pattern = t.pattern if isinstance(t.pattern, Tokens) else uncounted(t)
        terminals.append(out.terminal(pattern, t.name, t.priority, t.origin, "any"))
    origins = grammar.origins or ("",) * len(grammar.nonterminals)
    nonterminals = [out.nonterminal(name, origin) for name, origin in zip(grammar.nonterminals, origins, strict=True)]
    for lhs, rhs in grammar.rules:
        out.rule(nonterminals[lhs], [terminals[s] if s >= 0 else nonterminals[~s] for s in rhs])
    return nonterminals[grammar.start]


def uncounted(t: Terminal) -> Regular:
    """The words of a terminal of bytes, with its bounds as a repetition."""
    assert isinstance(t.pattern, Regular)
    if t.units is None or not isinstance(t.pattern, Cat):
        return t.pattern
    least, most = t.units
    parts = []
    for part in t.pattern.parts:
        match part:
            case Repeat(Unit(body), 0, None):
                parts.append(repeat(body, least, most))
            case _:
                parts.append(part)
    return cat(*parts)
