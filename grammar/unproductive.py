"""Why a grammar derives nothing: terminals that match no text, or recursion without an end."""

from __future__ import annotations

from collections.abc import Collection

from .ir import Grammar


def why_nothing(grammar: Grammar, empty_terminals: Collection[int]) -> str:
    """The message for a grammar whose start symbol derives nothing, where these terminals match no text."""
    name = grammar.nonterminals[grammar.start]
    if grammar.start not in _productive(grammar):
        return f"the grammar derives nothing: {name!r} has no finite word; give it a rule without recursion"
    listed = [grammar.terminals[number] for number in sorted(empty_terminals)]
    if len(grammar.terminals) == 1 and grammar.terminals[0].origin == "the pattern":
        return (
            "the grammar derives nothing: the pattern matches no text; look-arounds and anchors see the beginning and "
            "the end of the text, and nothing beyond"
        )
    named = "".join(f", like {t.name!r} of {t.origin or 'the grammar'}" for t in listed[:1])
    return (
        f"the grammar derives nothing: every way through {name!r} needs terminals that match no text{named}; such a "
        "terminal has a pattern that nothing fits, or a rule that only leads back to itself"
    )


def _productive(grammar: Grammar) -> set[int]:
    """The nonterminals that would derive a text if every terminal matched one, and every list in any order had one."""
    found: set[int] = set()
    waiting: dict[int, list[int]] = {}  # nonterminal -> rules with it on the right
    missing: list[int] = []
    todo: list[int] = []
    for number, (lhs, rhs) in enumerate(grammar.rules):
        wanted = {~s for s in rhs if s < 0}
        missing.append(len(wanted))
        for nonterminal in wanted:
            waiting.setdefault(nonterminal, []).append(number)
        if not missing[-1]:
            todo.append(lhs)
    todo += (nonterminal for listed in grammar.unordered for nonterminal in (listed.body, listed.rest))
    while todo:
        nonterminal = todo.pop()
        if nonterminal in found:
            continue
        found.add(nonterminal)
        for number in waiting.get(nonterminal, ()):
            missing[number] -= 1
            if not missing[number]:
                todo.append(grammar.rules[number][0])
    return found
