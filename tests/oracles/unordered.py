"""Unordered lists spelled out: a nonterminal for every set of members, the meaning that the engine's sets must have."""

from __future__ import annotations

from dataclasses import replace

from wfsa.grammar.ir import Grammar, Unordered

State = tuple[frozenset[int], int]  # members written and others of groups, how many others


def spelled_out(grammar: Grammar) -> Grammar:
    """The same language without unordered lists."""
    for listed in grammar.unordered:
        grammar = _spell(grammar, listed)
    return replace(grammar, unordered=())


def _spell(grammar: Grammar, listed: Unordered) -> Grammar:
    names, origins = list(grammar.nonterminals), list(grammar.origins)
    rules = [(lhs, rhs) for lhs, rhs in grammar.rules if lhs not in (listed.body, listed.rest)]
    symbols = [~rhs[0] for lhs, rhs in grammar.rules if lhs == listed.body]
    ends = [rhs for lhs, rhs in grammar.rules if lhs == listed.rest]
    (close,) = [rhs[0] for rhs in ends if len(rhs) == 1]
    (separator,) = [rhs[0] for rhs in ends if len(rhs) == 2]
    required = {m for m, needed in zip(listed.members, listed.required, strict=True) if needed}
    cap = listed.least if listed.most is None else listed.most
    grouped = {m for group in listed.groups for m in group}
    bodies: dict[State, int] = {(frozenset(), 0): listed.body}
    todo = list(bodies)

    def fresh(name: str) -> int:
        names.append(name)
        if origins:
            origins.append("")
        return len(names) - 1

    for state in todo:  # grows while it is walked
        written, others = state
        for m in symbols:
            if listed.ordered:
                at = listed.members.index(m) if m in listed.members else len(listed.members)
                passed = frozenset(listed.members[:at])
                if m in written or required & passed - written:
                    continue
                to = (written | passed | {m}) & {*listed.members}, others
            elif m in listed.members:
                if m in written:
                    continue
                to = written | {m}, others
            else:
                to = written | ({m} & grouped), min(others + 1, cap)
            n = len(written & set(listed.members)) + others + 1
            if listed.most is not None and n + len(required - to[0]) > listed.most:
                continue
            rest = fresh("rest")
            rules.append((bodies[state], (~m, ~rest)))
            if required <= to[0] and n >= listed.least and all(to[0] & set(group) for group in listed.groups):
                rules.append((rest, (close,)))
            if to not in bodies:
                bodies[to] = fresh("body")
                todo.append(to)
            rules.append((rest, (separator, ~bodies[to])))
    while True:  # a body of which nothing can be taken has no rule
        bare = {*range(len(names))} - {lhs for lhs, _ in rules}
        kept = [rule for rule in rules if not any(s < 0 and ~s in bare for s in rule[1])]
        if len(kept) == len(rules):
            break
        rules = kept
    return replace(grammar, nonterminals=tuple(names), origins=tuple(origins), rules=tuple(rules))
