"""The graph of stacks: many stacks of LR states as one graph, equal parts of them once (Tomita, 1987).

    Node    an LR state, and the nodes that lie below it; each way down to the bottom is a stack
    Tops    where the stacks of a configuration begin: nodes of different states

Nodes are interned: for a state and the nodes below it there is one node. Graphs that are equal are then one object,
and to compare configurations takes a look at their tops. To compare graphs by what is in them takes a walk down every
stack, and of an ambiguous text those are exponentially many. The table holds no node: what no configuration holds
any more is gone, so that it does not grow with what has been committed.

Acyclic, since no symbol of a normal form derives the empty word: what lies below a node ends earlier in the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakValueDictionary

from wfsa.reference.lr import LrTables

Below = dict["Node", None]  # a set in the order in which it was found


class Node:
    """Made by :class:`Stacks` only; equal where it is the same."""

    __slots__ = ("__weakref__", "below", "state")

    def __init__(self, state: int, below: tuple[Node, ...]) -> None:
        self.state, self.below = state, below


Tops = tuple[Node, ...]  # by state, the lowest first


class Stacks:
    """Of one LR automaton."""

    def __init__(self, tables: LrTables) -> None:
        self.tables = tables
        self._nodes: WeakValueDictionary[tuple[int, frozenset[Node]], Node] = WeakValueDictionary()
        self.bottom: Tops = (self.node(0, ()),)

    def __len__(self) -> int:
        """The nodes that some configuration holds."""
        return len(self._nodes)

    def shift(self, tops: Tops, terminal: int) -> Tops:
        """Behind a terminal, with all reductions before it; empty where no stack takes it."""
        found: dict[int, Below] = {}
        for state, below in reduced(self.tables, tops).items():
            to = self.tables.goto[state].get(terminal)
            if to is not None:
                found.setdefault(to, {})[self.node(state, below)] = None
        return self._tops(found)

    def merged(self, a: Tops, b: Tops) -> Tops:
        """The stacks of both."""
        found: dict[int, Below] = {}
        for node in (*a, *b):
            found.setdefault(node.state, {}).update(dict.fromkeys(node.below))
        return self._tops(found)

    def _tops(self, found: dict[int, Below]) -> Tops:
        return tuple(self.node(state, below) for state, below in sorted(found.items()))

    def node(self, state: int, below: Iterable[Node]) -> Node:
        """The one of this state on these nodes."""
        nodes = tuple(below)
        key = state, frozenset(nodes)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(state, nodes)
        return node


def reduced(tables: LrTables, tops: Tops) -> dict[int, Below]:
    """The states at the top after any reductions or none, and what lies below each."""
    found = {node.state: dict.fromkeys(node.below) for node in tops}
    changed = True
    while changed:
        changed = False
        for state in list(found):
            for goal, rhs in tables.complete[state]:
                for base in _down(found[state], len(rhs) - 1):
                    to = tables.goto[base.state].get(~goal)
                    if to is not None and base not in found.setdefault(to, {}):
                        found[to][base] = None
                        changed = True
    return found


def _down(nodes: Below, n: int) -> list[Node]:
    for _ in range(n):
        nodes = dict.fromkeys(below for one in nodes for below in one.below)
    return list(nodes)


def takes(tables: LrTables, tops: Tops, *, with_end: bool = False) -> frozenset[int]:
    """The terminals that can be shifted."""
    found = {symbol for state in reduced(tables, tops) for symbol in tables.goto[state] if symbol >= 0}
    return frozenset(found if with_end else found - {tables.form.end})
