"""A grammar inside another one.

Problem.  A grammar of the policy "cfg" (a JSON Schema's) counts every way of cutting the text into terminals; the
grammar around it may do the same, or take the longest terminal.  What holds for a whole text (a bound on white space,
items that must differ) cannot be part of one: it reads the text from its first byte.

Method.  Its rules are copied.  In a grammar of the longest match its terminals end wherever they match (`Match` "any"),
so that inside it every cut still counts, and none of them takes text from the grammar around, or gives way to it; and
what only "cfg" knows is spelled out (a counted terminal is a repetition) or refused (members in any order).

Invariant: the symbol derives exactly the sentences of the grammar.
"""

from __future__ import annotations

from dataclasses import replace

from wfsa.errors import GrammarError

from .allowance import check
from .ir import Grammar, GrammarBuilder, Terminal, Tokens, Unordered
from .regex.restrict import nullable
from .regular import And, Cat, Regular, Repeat, Unit, both, cat, repeat


def inlined(grammar: Grammar, out: GrammarBuilder, origin: str = "") -> int:
    """The symbol in `out` that derives the sentences of `grammar`; `origin` stands in front of its symbols' places.

    Raises GrammarError where the grammar needs what only a grammar by itself has.
    """
    alike = out.policy == "cfg"
    if grammar.policy != "cfg":
        raise GrammarError("terminals that take the longest match cannot be part of another grammar; write it in EBNF")
    for what, there in (
        ("items that must differ (uniqueItems)", grammar.distinct),
        ("members in any order", grammar.unordered and not alike),
        ("a bound on white space", grammar.white_space),
        ("ignored terminals", grammar.ignore),
    ):
        if there:
            raise GrammarError(f"a grammar with {what} cannot stand inside another: drop that, or compile it alone")
    terminals = []
    apart = _keys_apart(grammar)
    for i, t in enumerate(grammar.terminals):
        check()
        place = origin + t.origin.removeprefix("$") if origin else t.origin
        if alike:
            terminals.append(out.terminal(t.pattern, t.name, t.priority, place, units=t.units, apart=apart.get(i, 0)))
        else:
            pattern = t.pattern if isinstance(t.pattern, Tokens) else uncounted(t)
            terminals.append(out.terminal(pattern, t.name, t.priority, place, "any"))
    n = len(out.nonterminals)
    origins = grammar.origins or ("",) * len(grammar.nonterminals)
    for name, place in zip(grammar.nonterminals, origins, strict=True):
        out.nonterminal(name, origin + place.removeprefix("$") if origin else place)
    for lhs, rhs in grammar.rules:
        out.rules.append((n + lhs, tuple([terminals[s] if s >= 0 else s - n for s in rhs])))
    out.unordered += [_moved(u, n) for u in grammar.unordered]
    return ~(n + grammar.start)


def _keys_apart(grammar: Grammar) -> dict[int, int]:
    """Terminals that are keys of a member that can be one of several pairs, with the number of the pair."""
    numbers = {pair: i for u in grammar.unordered for pairs in u.members for i, pair in enumerate(pairs)}
    return {rhs[0]: numbers[lhs] for lhs, rhs in grammar.rules if numbers.get(lhs)} if numbers else {}


def _moved(u: Unordered, n: int) -> Unordered:
    return replace(
        u, body=u.body + n, rest=u.rest + n, members=tuple(tuple(m + n for m in pairs) for pairs in u.members),
        groups=tuple(tuple(m + n for m in group) for group in u.groups),
    )  # fmt: skip


def empty_symbols(grammar: Grammar) -> set[int]:
    """The symbols that may derive the empty word."""
    empty = {i for i, t in enumerate(grammar.terminals) if isinstance(t.pattern, Regular) and nullable(t.pattern)}
    grows = True
    while grows:
        check()
        before = len(empty)
        empty |= {~lhs for lhs, rhs in grammar.rules if empty.issuperset(rhs)}
        grows = len(empty) > before
    return empty


def uncounted(t: Terminal) -> Regular:
    """The words of a terminal of bytes, with its bounds as a repetition."""
    assert isinstance(t.pattern, Regular)
    if t.units is None:
        return t.pattern
    first, *others = t.pattern.parts if isinstance(t.pattern, And) else (t.pattern,)
    assert isinstance(first, Cat)
    least, most = t.units
    parts = []
    for part in first.parts:
        match part:
            case Repeat(Unit(body), 0, None):
                parts.append(repeat(body, least, most))
            case _:
                parts.append(part)
    return both(cat(*parts), *others)
