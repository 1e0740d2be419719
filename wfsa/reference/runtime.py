"""Constraints and states of the construction: masks by propagating weights, commits by GLR steps.

    mask      the parser automaton of each lexer state read down the graph of stacks at once, a place of it on a node
              once; what is accepted on the way is allowed. It ends where nothing that is left could be new
    commit    byte by byte through the lexer; a terminal that ends is shifted on all stacks with all reductions before

No mask parses, and no commit looks at the vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from pyroaring import BitMap, FrozenBitMap

from wfsa.errors import GrammarError, StateError
from wfsa.grammar.ir import Grammar, Tokens
from wfsa.reference.automata import MOST_PLACES, Dwa
from wfsa.reference.lexer import Lexer, LexerState, alive
from wfsa.reference.longest import Place, Readings, Rules, automata_of
from wfsa.reference.lr import LrTables, lr_tables
from wfsa.reference.normal_form import normal_form
from wfsa.reference.parser_dwa import depth_bound, parser_dwa
from wfsa.reference.stacks import Node, Stacks, Tops, takes
from wfsa.reference.templates import Template
from wfsa.reference.terminal_dwa import TerminalAutomata, Trie
from wfsa.reference.weights import ZERO, TokenSets, Weight
from wfsa.vocab import Vocab, require_vocab

__all__ = ["CfgState", "Constraint", "LongestState", "State", "compile", "takes"]


class ReadingDwas(NamedTuple):
    """Of a place, under "longest": parser automata over sets of readings."""

    tokens: list[FrozenBitMap]  # of each reading
    sets: TokenSets
    needed: Dwa[int]
    inhibited: Dwa[int]


class Constraint:
    """What :func:`compile` makes. Automata of lexer states are made when they are first asked for, or by `build`."""

    def __init__(
        self, grammar: Grammar, vocab: Vocab, max_places: int = MOST_PLACES, max_items: int | None = None
    ) -> None:
        require_vocab(vocab)
        grammar.check_invariants()
        self.vocab, self.policy, self.max_places = vocab, grammar.policy, max_places
        self.lexer = Lexer(grammar.terminals)
        self.tables: LrTables = lr_tables(normal_form(grammar, self.lexer.nullable), max_items)
        self.stacks = Stacks(self.tables)
        self.templates = [Template(self.tables, t) for t in range(self.tables.form.n_terminals)]
        self.sets = TokenSets(vocab.n_tokens)
        self.end = self.tables.form.end
        ends = set(vocab.eos_ids)
        self.by_id: dict[int, list[int]] = {self.end: sorted(ends)}
        for t, terminal in enumerate(grammar.terminals):
            if isinstance(terminal.pattern, Tokens):
                self.by_id[t] = _ids(terminal.name, terminal.pattern, vocab)
        not_text = ends | set(vocab.special_ids)
        text = [token for token, data in enumerate(vocab.tokens) if data and token not in not_text]
        self._text = frozenset(text)
        trie = Trie(vocab.tokens, text)
        self.terminal_automata = TerminalAutomata(self.lexer, trie, self.by_id, self.sets, max_places)
        self.rules = Rules.of(grammar, self.lexer)
        self._readings = Readings(self.rules, trie, vocab.tokens, self.by_id, self.end, max_places)
        self._made: dict[LexerState, Dwa[int]] = {}
        self._places: dict[Place, ReadingDwas] = {}

    def parser_dwa(self, state: LexerState) -> Dwa[int]:
        """Policy "cfg"."""
        if state not in self._made:
            terminals = self.terminal_automata.of(state)
            self._made[state] = parser_dwa(terminals, self.templates, self.sets, self.max_places)
        return self._made[state]

    def reading_dwas(self, place: Place) -> ReadingDwas:
        """Policy "longest"."""
        if place not in self._places:
            found = self._readings.of(place)
            sets = TokenSets(len(found))
            needed, inhibited = (
                parser_dwa(one, self.templates, sets, self.max_places)
                for one in automata_of(list(found), sets, self.max_places)
            )
            tokens = [FrozenBitMap(own) for own in found.values()]
            self._places[place] = ReadingDwas(tokens, sets, needed, inhibited)
        return self._places[place]

    def build(self) -> list[Dwa[int]]:
        """The automata of all lexer states. GrammarError under "longest", where it takes texts to know the places."""
        if self.policy != "cfg":
            raise GrammarError(
                "under 'longest' automata are of places in texts, and made when a text comes to one; build needs 'cfg'"
            )
        return [self.parser_dwa(state) for state in self.lexer.states(self.max_places)]

    def depth_bound(self, state: LexerState) -> int:
        """Policy "cfg": no deeper does the parser automaton of a lexer state read a stack; known before it is made."""
        return depth_bound(self.templates, self.terminal_automata.of(state))

    def is_text(self, token: int) -> bool:
        """May it be read as its bytes?"""
        return token in self._text

    def start(self) -> State:
        """Before the first token."""
        if self.policy == "cfg":
            return CfgState(self, {self.lexer.start: self.stacks.bottom})
        return LongestState(self, [begun(self, self.stacks.bottom)])


def _ids(terminal: str, pattern: Tokens, vocab: Vocab) -> list[int]:
    """As the engine's compiler resolves them, with its errors."""
    if pattern.name is not None:
        found = vocab.token_name_to_id(pattern.name)
        if found is None:
            raise GrammarError(f"terminal {terminal!r}: the vocabulary has no special token {pattern.name!r}")
        return [found]
    if pattern.others:
        return sorted(set(range(vocab.n_tokens)) - set(pattern.ids) - set(vocab.eos_ids.tolist()))
    for i in pattern.ids:
        if not 0 <= i < vocab.n_tokens:
            raise GrammarError(f"terminal {terminal!r}: token id {i} is out of range for {vocab.n_tokens} tokens")
    return sorted(pattern.ids)


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
    """What the automaton accepts of any of the stacks, or of what lies on top of one."""
    out: Weight = dwa.final[0]
    todo = [(0, node) for node in tops]
    seen: set[tuple[int, Node]] = set()
    while todo:
        place, node = todo.pop()
        arc = dwa.arcs[place].get(node.state)
        if arc is None or (arc[0], node) in seen or sets.difference(arc[1], out) == ZERO:
            continue
        seen.add((arc[0], node))
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
            shifted = self.constraint.stacks.shift(self._standing(), t)
            if shifted:
                after = self._with(after, self.constraint.lexer.start, shifted)
        return CfgState(self.constraint, after) if after else None

    def _step(self, before: dict[LexerState, Tops], byte: int) -> dict[LexerState, Tops]:
        out: dict[LexerState, Tops] = {}
        for lexer, tops in self._cut(before).items():
            after = self.constraint.lexer.step(lexer, byte)
            if alive(after) & takes(self.constraint.tables, tops):
                out = self._with(out, after, tops)
        return out

    def _cut(self, at: dict[LexerState, Tops]) -> dict[LexerState, Tops]:
        """... and where terminals that are complete have ended. None matches the empty word, so once is enough."""
        out = dict(at)
        for lexer, tops in at.items():
            for t in self.constraint.lexer.accepts(lexer):
                shifted = self.constraint.stacks.shift(tops, t)
                if shifted:
                    out = self._with(out, self.constraint.lexer.start, shifted)
        return out

    def _with(self, at: dict[LexerState, Tops], lexer: LexerState, tops: Tops) -> dict[LexerState, Tops]:
        return {**at, lexer: self.constraint.stacks.merged(at.get(lexer, ()), tops)}


class LongestState(State):
    """Configurations of one sequence of terminals each, or of several that left the same stacks."""

    def __init__(self, constraint: Constraint, configs: list[tuple[Place, Tops]], *, finished: bool = False) -> None:
        super().__init__(constraint, finished=finished)
        self.configs = list(dict.fromkeys(configs))

    def get_mask(self) -> FrozenBitMap:
        out: BitMap = BitMap()
        for place, tops in self.configs:
            tokens, sets, needed, inhibited = self.constraint.reading_dwas(place)
            left = sets.difference(allowed(needed, tops, sets), allowed(inhibited, tops, sets))
            for reading in sets[left]:
                out |= tokens[reading]
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
                    after = [*after, begun(self.constraint, self.constraint.stacks.shift(tops, t))]
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
            to = tops if t in rules.ignored else self.constraint.stacks.shift(tops, t)
            if to:
                out.append(begun(self.constraint, to, rules.watched(place, t)))
        return out


def begun(constraint: Constraint, tops: Tops, watch: LexerState = frozenset()) -> tuple[Place, Tops]:
    """A configuration behind a cut, under "longest": the lexer begins with what these stacks take."""
    rules = constraint.rules
    return Place(rules.begin(takes(constraint.tables, tops) | rules.ignored), watch), tops


def compile(
    grammar: Grammar, vocab: Vocab, *, max_places: int = MOST_PLACES, max_items: int | None = None
) -> Constraint:
    """GrammarError for what is no rule of the grammar, as counted terminals and unordered lists.

    A parser automaton can be exponentially large, so masks raise LimitError where one has more than `max_places`
    places, each of which is a state of the automaton that it is made deterministic from, in one of its own. So can
    the LR automaton: LimitError where its states have more than `max_items` items.
    """
    return Constraint(grammar, vocab, max_places, max_items)

