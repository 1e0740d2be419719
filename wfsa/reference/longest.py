"""The policy "longest": what a token is read as, and what would have been read instead.

A terminal ends where no other one that the parser could take matches longer. What it could take is known for the
stack as it stands, not behind the first cut within a token: that depends on what the stack becomes. So the weights
are not tokens but *readings*, and each comes with what inhibits it:

    reading        the terminals that a token ends, and the one that it leaves open or complete
    inhibits       the terminals up to a cut, then one that would match longer there, or as long and is preferred, or a
                   shorter one that is to match as short as can be

Two parser automata over sets of readings are read down the stacks: one of the words of terminals that readings need,
one of the words that inhibit them. Allowed are the tokens of the readings that are accepted by the first and not by
the second. A terminal that is ignored is always taken, and is no letter. Tokens that are read alike share a reading,
and what follows a cut is worked out once for each rest of a token: it does not depend on the place.

A token of n bytes can be cut in exponentially many ways, `*` and `**` into a row of stars. They stay apart, as each
cut has its own inhibitors; what is counted of them is limited (`max_places`).

What is still running when a token ends goes on in the configuration: `watch`, automata of earlier terminals that
would have been longer; when one of them accepts, the cut was wrong.

**What is merged.** Configurations with one place and the same stacks, whatever terminals led to them. Merging more was
tried: all stacks of one lexer state, with the intersection of what inhibits them. The masks are then wrong: with
s -> a b c x | d b c y | d bc z, ``a`` and ``d`` both spelled "a", the text "abc" is b c behind ``a`` and bc behind
``d``. Merged, bc either inhibits b for both, and x is lost, or for none, and y is let in. test_longest.py has the case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wfsa.grammar.ir import Grammar
from wfsa.reference.automata import MOST_PLACES, Dwa, Nwa, determinize, minimise, too_large
from wfsa.reference.lexer import Lexer, LexerState, alive
from wfsa.reference.terminal_dwa import Trie
from wfsa.reference.weights import TokenSets

Word = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Where a configuration stands in the lexer: since the last cut, and what watches that and earlier ones."""

    main: LexerState
    watch: LexerState = frozenset()


class Reading(NamedTuple):
    """Of a token, as terminals."""

    word: Word
    inhibited: frozenset[Word]

    @property
    def n_letters(self) -> int:
        """What it adds to the size of the automata, at most."""
        return len(self.word) + sum(map(len, self.inhibited))


class Cut(NamedTuple):
    """How the first terminal of a text ends: its letter, what inhibits it, and where; None: it is left open."""

    letter: Word
    inhibited: frozenset[Word]
    end: int | None


@dataclass(frozen=True)
class Rules:
    """Who wins."""

    lexer: Lexer
    ignored: frozenset[int]
    any: frozenset[int]  # terminals that end wherever they match, and compete with none
    shortest: frozenset[int]
    priority: tuple[int, ...]
    all_win: bool  # of equal priority; else the first one

    @classmethod
    def of(cls, grammar: Grammar, lexer: Lexer) -> Rules:
        """Of the terminals of a grammar."""
        how = [one.match for one in grammar.terminals]
        return cls(
            lexer, frozenset(grammar.ignore),
            frozenset(t for t, one in enumerate(how) if one == "any"),
            frozenset(t for t, one in enumerate(how) if one == "shortest"),
            tuple(one.priority for one in grammar.terminals), grammar.ties == "all",
        )  # fmt: skip

    def beats(self, a: int, b: int) -> bool:
        """At equal length."""
        if self.priority[a] != self.priority[b]:
            return self.priority[a] > self.priority[b]
        return not self.all_win and a < b

    def inhibits(self, a: int, ends_a: Sequence[int], t: int, end: int | None) -> bool:
        """Does a, with these ends from a cut on, void t that ends at `end`, or is open behind all (None)?"""
        if a in self.any or t in self.any:
            return False
        first = ends_a[0] if a in self.shortest and ends_a else None
        if end is None:
            return first is not None
        if t in self.shortest:  # of its one end; what matches longer is given up there
            return first is not None and (first < end or (first == end and self.beats(a, t)))
        if first is not None and first <= end:
            return True
        return any(one > end for one in ends_a) or (end in ends_a and self.beats(a, t))

    # --- as a configuration goes on, where what the parser takes is known -------------------------------------------

    def begin(self, takes: frozenset[int]) -> LexerState:
        """Of these terminals alone."""
        return frozenset((t, s) for t, s in self.lexer.start if t in takes)

    def winners(self, main: LexerState) -> list[int]:
        """The terminals that may end here, by what is known so far."""
        ends = self.lexer.accepts(main)
        rivals = [t for t in ends if t not in self.any]
        if any(t in self.shortest for t in rivals):
            rivals = [t for t in rivals if t in self.shortest]
        best = [t for t in rivals if not any(self.beats(a, t) for a in rivals)]
        return sorted({*best, *(ends & self.any)})

    def watched(self, place: Place, t: int) -> LexerState:
        """Behind a cut of t."""
        if t in self.any or t in self.shortest:
            return place.watch
        return place.watch | frozenset((a, s) for a, s in place.main if a not in self.any)

    def step(self, place: Place, byte: int) -> Place | None:
        """None: nothing goes on so, or an earlier cut is void."""
        watch = self.lexer.step(place.watch, byte)
        if self.lexer.accepts(watch):
            return None
        main = self.lexer.step(place.main, byte)
        if self.lexer.accepts(main) & self.shortest:
            ends = self.lexer.accepts(main)
            main = frozenset((t, s) for t, s in main if t in self.any or (t in self.shortest and t in ends))
        return Place(main, watch) if main else None


class Readings:
    """Of a place: every token in every way. LimitError where they have more than `most` letters, with what inhibits."""

    def __init__(
        self, rules: Rules, trie: Trie, tokens: Sequence[bytes], by_id: Mapping[int, Sequence[int]], end: int,
        most: int = MOST_PLACES,
    ) -> None:
        self._rules, self._tokens, self._by_id, self._end, self._most = rules, tokens, by_id, end, most
        self._text = [token for own in trie.own for token in own]
        self._known: dict[bytes, list[Reading]] = {b"": [Reading((), frozenset())]}

    def of(self, place: Place) -> dict[Reading, list[int]]:
        """The tokens of each."""
        out: dict[Reading, list[int]] = {}
        left = self._most
        for reading, token in self._all(place):
            if reading not in out:
                left -= reading.n_letters
                if left < 0:
                    raise too_large(self._most)
            out.setdefault(reading, []).append(token)
        return out

    def _all(self, place: Place) -> Iterator[tuple[Reading, int]]:
        rules = self._rules
        for token in self._text:
            text = self._tokens[token]
            if not self._accepts_within(place.watch, text):
                yield from ((reading, token) for reading in self._joined(self._first(place, text), text))
        for t, tokens in self._by_id.items():
            rivals = [a for a in self._by_id if a not in (t, self._end)] if t != self._end else []
            for token in tokens:
                for word in self._ended(place):
                    ties = {(*word, a) for a in rivals if token in self._by_id[a] and rules.inhibits(a, [1], t, 1)}
                    yield Reading((*word, t), frozenset(ties)), token

    def _ended(self, place: Place) -> Iterator[Word]:
        """A cut before anything else is read; a place where nothing has been read needs none."""
        if place.main <= self._rules.lexer.start:
            yield ()
        for t in self._rules.winners(place.main):
            yield self._letter(t)

    def _first(self, place: Place, text: bytes) -> Iterator[Cut]:
        """What the parser takes in place of the first terminal is known: `main` has no other."""
        rules = self._rules
        if not place.main <= rules.lexer.start:
            for t in rules.winners(place.main):
                # What goes on from here is watched behind a cut, and voids it when it accepts.
                if not self._accepts_within(rules.watched(Place(place.main), t), text):
                    yield Cut(self._letter(t), frozenset(), 0)
        yield from self._cuts(place.main, text, known=True)

    def _accepts_within(self, state: LexerState, text: bytes) -> bool:
        for byte in text:
            state = self._rules.lexer.step(state, byte)
            if self._rules.lexer.accepts(state):
                return True
        return False

    def _behind(self, text: bytes) -> list[Reading]:
        """From a cut on, with all terminals: which of them the parser takes is for the automata to say."""
        cuts: dict[int, list[Cut]] = {}
        todo = [0]
        while todo:
            at = todo.pop()
            if at not in cuts and text[at:] not in self._known:
                cuts[at] = list(self._cuts(self._rules.lexer.start, text[at:], known=False))
                todo += [at + cut.end for cut in cuts[at] if cut.end is not None]
        for at in sorted(cuts, reverse=True):
            self._known[text[at:]] = self._joined(cuts[at], text[at:])
        return self._known[text]

    def _joined(self, cuts: Iterable[Cut], text: bytes) -> list[Reading]:
        """Each cut with every reading of what is behind it."""
        out: dict[Reading, None] = {}
        left = self._most
        for letter, inhibited, end in cuts:
            for word, more in self._behind(b"" if end is None else text[end:]):
                reading = Reading(letter + word, inhibited | {letter + bar for bar in more})
                out[reading] = None
                left -= reading.n_letters
                if left < 0:
                    raise too_large(self._most)
        return list(out)

    def _cuts(self, at: LexerState, text: bytes, *, known: bool) -> Iterator[Cut]:
        """Of the first terminal; `known`: the parser takes all of this lexer state."""
        rules, ends = self._rules, dict[int, list[int]]()
        for n, byte in enumerate(text):
            at = rules.lexer.step(at, byte)
            for t in rules.lexer.accepts(at):
                ends.setdefault(t, []).append(n + 1)
        always = {a for a in ends if known or a in rules.ignored}

        for t in sorted(set(ends) | alive(at)):
            on: list[int | None] = [None] if t in alive(at) and self._goes_on(t, at) else []
            for end in [*ends.get(t, []), *on]:
                found = {a for a in ends if rules.inhibits(a, ends[a], t, end)}
                if t not in found and not found & always:
                    yield Cut(self._letter(t), frozenset((a,) for a in found), end)

    def _goes_on(self, t: int, at: LexerState) -> bool:
        words = self._rules.lexer.words[t]
        return words is not None and any(bool((words.to[s] >= 0).any()) for a, s in at if a == t)

    def _letter(self, t: int) -> Word:
        return () if t in self._rules.ignored else (t,)


def automata_of(readings: Sequence[Reading], sets: TokenSets, most: int = MOST_PLACES) -> tuple[Dwa[int], Dwa[int]]:
    """Over the terminals of readings, and of what inhibits them; weights are sets of readings, by their numbers."""
    needed = [(one.word, number) for number, one in enumerate(readings)]
    inhibited = [(word, number) for number, one in enumerate(readings) for word in sorted(one.inhibited)]
    return _of_words(needed, sets, most), _of_words(inhibited, sets, most)


def _of_words(words: Iterable[tuple[Word, int]], sets: TokenSets, most: int) -> Dwa[int]:
    nwa: Nwa[int] = Nwa()
    root = nwa.add_state()
    nwa.start[root] = sets.one
    children: dict[tuple[int, int], int] = {}
    ends: dict[int, list[int]] = {}
    for word, number in words:
        state = root
        for letter in word:
            if (state, letter) not in children:
                children[state, letter] = nwa.add_state()
                nwa.arcs[state].append((letter, children[state, letter], sets.one))
            state = children[state, letter]
        ends.setdefault(state, []).append(number)
    nwa.final = {state: sets.of(numbers) for state, numbers in ends.items()}
    return minimise(determinize(nwa, sets, most=most), sets)
