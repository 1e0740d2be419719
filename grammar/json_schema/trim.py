"""Dropping what derives nothing: rules, and with them pairs of unordered lists.

A nonterminal is productive if one of its rules has productive symbols only; a list of members in any order needs a pair
of each member that it requires besides, one of each group, and as many members as it asks for.  (Whether pairs can be
chosen so that all groups are met at once is seen where a list is made.)  Linear in the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir import Unordered

Rule = tuple[int, tuple[int, ...]]


class _Needs:
    """What an unordered list still lacks to derive something."""

    def __init__(self, listed: Unordered) -> None:
        self._member_of = {pair: k for k, pairs in enumerate(listed.members) for pair in pairs}
        self._required = {k for k, needed in enumerate(listed.required) if needed}
        self._there: set[int] = set()
        self._fewer = listed.least  # members and others
        self._groups = [*map(set, listed.groups)]

    def met_by(self, pair: int) -> bool:
        """Is nothing lacking any more, now that a pair derives something?"""
        member = self._member_of.get(pair)
        if member is None:
            self._fewer = 0  # an other, which can be repeated
        elif member not in self._there:
            self._there.add(member)
            self._required.discard(member)
            self._fewer -= 1
        self._groups = [group for group in self._groups if pair not in group]
        return not self._required and self._fewer <= 0 and not self._groups


def trimmed(
    rules: Sequence[Rule], n: int, lists: Sequence[Unordered], start: int
) -> tuple[list[Rule], list[Unordered]] | None:
    """The productive rules of `n` nonterminals, and the lists with the pairs that are left; None if `start` is not.

    `start` is a nonterminal number.
    """
    waiting = [0] * len(rules)  # symbols of a rule not known to derive something
    uses: list[list[int]] = [[] for _ in range(n)]
    good = [False] * n
    todo: list[int] = []
    needs = {u.body: _Needs(u) for u in lists}
    bodies: dict[int, list[int]] = {u.body: [] for u in lists}  # their rules, which wait for what the list needs
    list_of: dict[int, int] = {}  # pair -> body
    for i, (lhs, rhs) in enumerate(rules):
        for symbol in rhs:
            if symbol < 0:
                waiting[i] += 1
                uses[~symbol].append(i)
        if lhs in bodies:
            waiting[i] += 1
            bodies[lhs].append(i)
            list_of[~rhs[0]] = lhs
        if not waiting[i] and not good[lhs]:
            good[lhs] = True
            todo.append(lhs)
    for number in todo:  # grows while it is walked
        released = uses[number]
        body = list_of.get(number)
        if body is not None and bodies[body] and needs[body].met_by(number):
            released = [*released, *bodies[body]]
            bodies[body] = []
        for i in released:
            waiting[i] -= 1
            lhs = rules[i][0]
            if not waiting[i] and not good[lhs]:
                good[lhs] = True
                todo.append(lhs)
    if not good[start]:
        return None
    kept = [rule for i, rule in enumerate(rules) if not waiting[i]]

    def left(pairs: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(pair for pair in pairs if good[pair])

    return kept, [
        replace(
            u, members=tuple(left(pairs) for pairs in u.members if left(pairs)),
            required=tuple(r for pairs, r in zip(u.members, u.required, strict=True) if left(pairs)),
            groups=tuple(map(left, u.groups)),
        )
        for u in lists
        if good[u.body]
    ]  # fmt: skip
