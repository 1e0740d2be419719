"""Constraints and states of the construction: masks by propagating weights, commits by GLR steps.

    mask      the parser automaton of each lexer state read down the graph of stacks at once, a place of it on a node
              once; what is accepted on the way is allowed. It ends where nothing that is left could be new
    commit    byte by byte through the lexer; a terminal that ends is shifted on all stacks with all reductions before

No mask parses, and no commit looks at the vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from pyroaring import BitMap, FrozenBitMap

from wfsa.errors import StateError
from wfsa.grammar.ir import Grammar, Tokens
from wfsa.reference.automata import MOST_PLACES, Dwa
from wfsa.reference.lexer import Lexer, LexerState, alive
from wfsa.reference.longest import Place, Readings, Rules, automata_of
from wfsa.reference.lr import LrTables, lr_tables
from wfsa.reference.normal_form import normal_form
from wfsa.reference.parser_dwa import parser_dwa
from wfsa.reference.templates import Template
from wfsa.reference.terminal_dwa import TerminalAutomata, Trie
from wfsa.reference.weights import ZERO, TokenSets, Weight
from wfsa.vocab import Vocab


@dataclass(eq=False)
class Node:
    """An LR state on each of the stacks below it."""

    state: int
    below: list[Node] = field(default_factory=list)


Tops = tuple[Node, ...]  # of different states


class Constraint:
    """What :func:`compile` makes. Automata of lexer states are made when they are first asked for, or by `build`."""

    def __init__(
        self, grammar: Grammar, vocab: Vocab, max_places: int = MOST_PLACES, max_items: int | None = None
    ) -> None:
        self.vocab, self.policy, self.max_places = vocab, grammar.policy, max_places
        self.lexer = Lexer(grammar.terminals)
        self.tables: LrTables = lr_tables(normal_form(grammar, self.lexer.nullable), max_items)
        self.templates = [Template(self.tables, t) for t in range(self.tables.form.n_terminals)]
        self.sets = TokenSets(vocab.n_tokens)
        self.end = self.tables.form.end
        ends = set(vocab.eos_ids)
        self.by_id: dict[int, list[int]] = {self.end: sorted(ends)}
        for t, terminal in enumerate(grammar.terminals):
            if isinstance(terminal.pattern, Tokens):
                self.by_id[t] = _ids(terminal.pattern, vocab)
        not_text = ends | set(vocab.special_ids)
        text = [token for token, data in enumerate(vocab.tokens) if data and token not in not_text]
        self._text = frozenset(text)
        trie = Trie(vocab.tokens, text)
        self.terminal_automata = TerminalAutomata(self.lexer, trie, self.by_id, self.sets)
        self.rules = Rules.of(grammar, self.lexer)
        self._readings = Readings(self.rules, trie, vocab.tokens, self.by_id, self.end)
        self._made: dict[LexerState, Dwa[int]] = {}
        self._places: dict[Place, tuple[list[int], TokenSets, Dwa[int], Dwa[int]]] = {}

    def parser_dwa(self, state: LexerState) -> Dwa[int]:
        """Policy "cfg"."""
        if state not in self._made:
            terminals = self.terminal_automata.of(state)
            self._made[state] = parser_dwa(terminals, self.templates, self.sets, self.max_places)
        return self._made[state]

    def reading_dwas(self, place: Place) -> tuple[list[int], TokenSets, Dwa[int], Dwa[int]]:
        """Policy "longest": the token of each reading; sets of readings; what they need, what inhibits them."""
        if place not in self._places:
            readings = self._readings.of(place)
            sets = TokenSets(len(readings))
            made = automata_of(readings, sets)
            needed, inhibited = (
                parser_dwa(one, self.templates, sets, self.max_places) for one in (made.needed, made.inhibited)
            )
            self._places[place] = [one.token for one in readings], sets, needed, inhibited
        return self._places[place]

    def build(self) -> list[Dwa[int]]:
        """The automata of all lexer states, under "cfg"."""
        return [self.parser_dwa(state) for state in self.lexer.states()]

    def is_text(self, token: int) -> bool:
        return token in self._text

    def start(self) -> State:
        if self.policy == "cfg":
            return CfgState(self, {self.lexer.start: (Node(0),)})
        first = (Node(0),)
        return LongestState(self, [(Place(self.rules.begin(takes(self.tables, first) | self.rules.ignored)), first)])


def _ids(pattern: Tokens, vocab: Vocab) -> list[int]:
    if pattern.name is not None:
        return [token for token in vocab.special_ids if vocab.tokens[token] == pattern.name.encode()]
    if pattern.others:
        return sorted(set(range(vocab.n_tokens)) - set(pattern.ids) - set(vocab.eos_ids))
    return list(pattern.ids)


class State(ABC):
    """A text. Immutable: `commit` returns the one behind a token."""

    def __init__(self, constraint: Constraint, *, finished: bool = False) -> None:
        self.constraint, self.finished = constraint, finished

    @abstractmethod
    def get_mask(self) -> FrozenBitMap:
        """The tokens that may come next."""

    def commit(self, token: int) -> State | None:
        """The text behind a token; None if it is not allowed. StateError after the end.

        A token that ends the text may be text as well; the text has ended then.
        """
        if self.finished:
            raise StateError("the text has ended")
        return self._ended() if token in self.constraint.vocab.eos_ids and self._may_end() else self._behind(token)

    @abstractmethod
    def _ended(self) -> State: ...
    @abstractmethod
    def _may_end(self) -> bool: ...
    @abstractmethod
    def _behind(self, token: int) -> State | None: ...


def allowed(dwa: Dwa[int], tops: Tops, sets: TokenSets) -> Weight:
    out: Weight = dwa.final[0]
    todo = [(0, node) for node in tops]
    seen: set[tuple[int, int]] = set()
    while todo:
        place, node = todo.pop()
        arc = dwa.arcs[place].get(node.state)
        if arc is None or (arc[0], id(node)) in seen or sets.difference(arc[1], out) == ZERO:
            continue
        seen.add((arc[0], id(node)))
        out = sets.union(out, dwa.final[arc[0]])
        todo += [(arc[0], below) for below in node.below]
    return out


class CfgState(State):
    """Where a lexer state is the same, stacks are one graph."""

    def __init__(self, constraint: Constraint, tops: dict[LexerState, Tops], *, finished: bool = False) -> None:
        super().__init__(constraint, finished=finished)
        self.tops = tops

    def get_mask(self) -> FrozenBitMap:
        out: BitMap = BitMap()
        for lexer, tops in self.tops.items():
            out |= self.constraint.sets[allowed(self.constraint.parser_dwa(lexer), tops, self.constraint.sets)]
        return FrozenBitMap(out)

    def _ended(self) -> State:
        return CfgState(self.constraint, {}, finished=True)

    def _standing(self) -> Tops:
        """Behind all terminals that are complete."""
        return self._cut(self.tops).get(self.constraint.lexer.start, ())

    def _may_end(self) -> bool:
        return self.constraint.end in takes(self.constraint.tables, self._standing(), with_end=True)

    def _behind(self, token: int) -> State | None:
        after: dict[LexerState, Tops] = {}
        if self.constraint.is_text(token):
            after = self.tops
            for byte in self.constraint.vocab.tokens[token]:
                after = self._step(after, byte)
        for t, ids in self.constraint.by_id.items():
            if t == self.constraint.end or token not in ids:
                continue
            shifted = shift(self.constraint.tables, self._standing(), t)
            if shifted:
                after = _merged(after, self.constraint.lexer.start, shifted)
        return CfgState(self.constraint, after) if after else None

    def _step(self, before: dict[LexerState, Tops], byte: int) -> dict[LexerState, Tops]:
        out: dict[LexerState, Tops] = {}
        for lexer, tops in self._cut(before).items():
            after = self.constraint.lexer.step(lexer, byte)
            if alive(after) & takes(self.constraint.tables, tops):
                out = _merged(out, after, tops)
        return out

    def _cut(self, at: dict[LexerState, Tops]) -> dict[LexerState, Tops]:
        """... and where terminals that are complete have ended. None matches the empty word, so once is enough."""
        out = dict(at)
        for lexer, tops in at.items():
            for t in self.constraint.lexer.accepts(lexer):
                shifted = shift(self.constraint.tables, tops, t)
                if shifted:
                    out = _merged(out, self.constraint.lexer.start, shifted)
        return out


class LongestState(State):
    """Configurations of one sequence of terminals each."""

    def __init__(self, constraint: Constraint, configs: list[tuple[Place, Tops]], *, finished: bool = False) -> None:
        super().__init__(constraint, finished=finished)
        self.configs = list({(place, tuple(map(_key, tops))): (place, tops) for place, tops in configs}.values())

    def get_mask(self) -> FrozenBitMap:
        out: BitMap = BitMap()
        for place, tops in self.configs:
            tokens, sets, needed, inhibited = self.constraint.reading_dwas(place)
            left = sets.difference(allowed(needed, tops, sets), allowed(inhibited, tops, sets))
            out |= BitMap(tokens[reading] for reading in sets[left])
        return FrozenBitMap(out)

    def _ended(self) -> State:
        return LongestState(self.constraint, [], finished=True)

    def _standing(self) -> list[Tops]:
        """Behind the terminals that are complete, or before the first byte of one."""
        fresh = [tops for place, tops in self.configs if place.main <= self.constraint.lexer.start]
        return fresh + [tops for config in self.configs for _, tops in self._cut(config)]

    def _may_end(self) -> bool:
        tables = self.constraint.tables
        return any(self.constraint.end in takes(tables, tops, with_end=True) for tops in self._standing())

    def _behind(self, token: int) -> State | None:
        after: list[tuple[Place, Tops]] = []
        if self.constraint.is_text(token):
            after = self.configs
            for byte in self.constraint.vocab.tokens[token]:
                after = LongestState(self.constraint, self._step(after, byte)).configs
        named = [t for t, ids in self.constraint.by_id.items() if t != self.constraint.end and token in ids]
        rules = self.constraint.rules
        for tops in self._standing():
            rivals = [t for t in named if t in takes(self.constraint.tables, tops)]
            for t in rivals:
                if not any(a != t and rules.inhibits(a, [1], t, 1) for a in rivals):
                    after = [*after, self._begin(shift(self.constraint.tables, tops, t), frozenset())]
        return LongestState(self.constraint, after) if after else None

    def _step(self, before: list[tuple[Place, Tops]], byte: int) -> list[tuple[Place, Tops]]:
        out = []
        for config in before:
            for place, tops in [config, *self._cut(config)]:
                after = self.constraint.rules.step(place, byte)
                if after is not None:
                    out.append((after, tops))
        return out

    def _cut(self, config: tuple[Place, Tops]) -> list[tuple[Place, Tops]]:
        place, tops = config
        rules, out = self.constraint.rules, []
        for t in rules.winners(place.main):
            to = tops if t in rules.ignored else shift(self.constraint.tables, tops, t)
            if to:
                out.append(self._begin(to, rules.watched(place, t)))
        return out

    def _begin(self, tops: Tops, watch: LexerState) -> tuple[Place, Tops]:
        rules = self.constraint.rules
        return Place(rules.begin(takes(self.constraint.tables, tops) | rules.ignored), watch), tops


def _key(node: Node) -> object:
    """Equal for equal stacks."""
    return node.state, frozenset(map(_key, node.below))


def _merged(at: dict[LexerState, Tops], lexer: LexerState, tops: Tops) -> dict[LexerState, Tops]:
    """Tops of one state are one node."""
    by_state: dict[int, list[Node]] = {}
    for node in (*at.get(lexer, ()), *tops):
        by_state.setdefault(node.state, []).append(node)
    one = tuple(
        nodes[0] if len(nodes) == 1 else Node(state, list({id(b): b for node in nodes for b in node.below}.values()))
        for state, nodes in sorted(by_state.items())
    )
    return {**at, lexer: one}


def reduced(tables: LrTables, tops: Tops) -> list[Node]:
    """These nodes, and those after any reductions; a state on one node once."""
    nodes = {node.state: Node(node.state, list(node.below)) for node in tops}
    changed = True
    while changed:
        changed = False
        for node in list(nodes.values()):
            for goal, rhs in tables.complete[node.state]:
                for base in _below(node, len(rhs)):
                    to = tables.goto[base.state].get(~goal)
                    if to is None:
                        continue
                    new = nodes.setdefault(to, Node(to))
                    if not any(base is one for one in new.below):
                        new.below.append(base)
                        changed = True
    return list(nodes.values())


def _below(node: Node, n: int) -> list[Node]:
    level = [node]
    for _ in range(n):
        level = list({id(below): below for one in level for below in one.below}.values())
    return level


def shift(tables: LrTables, tops: Tops, terminal: int) -> Tops:
    by_state: dict[int, list[Node]] = {}
    for node in reduced(tables, tops):
        to = tables.goto[node.state].get(terminal)
        if to is not None:
            by_state.setdefault(to, []).append(node)
    return tuple(Node(state, below) for state, below in sorted(by_state.items()))


def takes(tables: LrTables, tops: Tops, *, with_end: bool = False) -> frozenset[int]:
    """The terminals that can be shifted."""
    found = {symbol for node in reduced(tables, tops) for symbol in tables.goto[node.state] if symbol >= 0}
    return frozenset(found if with_end else found - {tables.form.end})


def compile(
    grammar: Grammar, vocab: Vocab, *, max_places: int = MOST_PLACES, max_items: int | None = None
) -> Constraint:
    """GrammarError for what is no rule of the grammar, as counted terminals and unordered lists.

    A parser automaton can be exponentially large, so masks raise LimitError where one has more than `max_places`
    places, each of which is a state of the automaton that it is made deterministic from, in one of its own. So can
    the LR automaton: LimitError where its states have more than `max_items` items.
    """
    return Constraint(grammar, vocab, max_places, max_items)

