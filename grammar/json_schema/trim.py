"""Dropping what derives nothing: rules, and with them members of unordered lists.

A nonterminal is productive if one of its rules has productive symbols only; a list of members in any order needs all
that it requires besides.  Linear in the rules, and again for each list that loses what it cannot do without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wfsa.grammar.ir import Unordered

Rule = tuple[int, tuple[int, ...]]


def trimmed(
    rules: Sequence[Rule], n: int, lists: Sequence[Unordered], start: int
) -> tuple[list[Rule], list[Unordered]] | None:
    """The productive rules of `n` nonterminals, and the lists with the members that are left; None if `start` is not.

    `start` is a nonterminal number.
    """
    waiting = [0] * len(rules)  # symbols of a rule not known to derive something
    uses: list[list[int]] = [[] for _ in range(n)]
    good = [False] * n
    todo: list[int] = []
    required = {u.body: [~m for m, needed in zip(u.members, u.required, strict=True) if needed] for u in lists}
    for i, (lhs, rhs) in enumerate(rules):
        for symbol in (*rhs, *required.get(lhs, ())) if required else rhs:
            if symbol < 0:
                waiting[i] += 1
                uses[~symbol].append(i)
        if not waiting[i] and not good[lhs]:
            good[lhs] = True
            todo.append(lhs)
    # ... and enough members, or others, which can be repeated.
    lacking = [u.least for u in lists]
    counted: dict[int, tuple[int, bool]] = {}  # the list that waits for a nonterminal, and whether it is a member
    bodies: list[list[int]] = [[] for _ in lists]
    large = {u.body: k for k, u in enumerate(lists) if u.least > 1}
    for i, (lhs, rhs) in enumerate(rules) if large else ():
        if lhs in large:
            k = large[lhs]
            counted[~rhs[0]] = k, ~rhs[0] in lists[k].members
            bodies[k].append(i)
            waiting[i] += 1
    for number in todo:  # grows while it is walked
        released: list[int] = []
        if number in counted:
            k, member = counted[number]
            if lacking[k] > 0:
                lacking[k] = lacking[k] - 1 if member else 0
                released = bodies[k] if lacking[k] <= 0 else []
        for i in (*uses[number], *released):
            waiting[i] -= 1
            lhs = rules[i][0]
            if not waiting[i] and not good[lhs]:
                good[lhs] = True
                todo.append(lhs)
    if not good[start]:
        return None
    kept = [rule for i, rule in enumerate(rules) if not waiting[i]]
    left: list[Unordered] = []
    empty: set[int] = set()  # bodies that cannot have enough
    for u in lists:
        if not good[u.body]:
            continue
        pairs = [(m, needed) for m, needed in zip(u.members, u.required, strict=True) if good[m]]
        groups = tuple(tuple(m for m in group if good[m]) for group in u.groups)
        few = len(pairs) < u.least and sum(lhs == u.body for lhs, _ in kept) == len(pairs)
        if few or not all(groups):
            empty.add(u.body)
        members, needs = tuple(m for m, _ in pairs), tuple(needed for _, needed in pairs)
        left.append(replace(u, members=members, required=needs, groups=groups))
    if empty:
        return trimmed([r for r in kept if r[0] not in empty], n, [u for u in left if u.body not in empty], start)
    return kept, left
