"""The policy "longest": what a token is read as, and what would have been read instead.

A terminal ends where no other one that the parser could take matches longer. What it could take is known for the
stack as it stands, not behind the first cut within a token: that depends on what the stack becomes. So the weights
are not tokens but *readings*, and each comes with what inhibits it:

    reading        a token, the terminals that it ends, where, and the one that it leaves open or complete
    inhibits       the terminals up to a cut, then one that would match longer there, or as long and is preferred, or a
                   shorter one that is to match as short as can be

Two parser automata over sets of readings are read down the stacks: one of the words of terminals that readings need,
one of the words that inhibit them. Allowed are the tokens of the readings that are accepted by the first and not by
the second. A terminal that is ignored is always taken, and is no letter.

What is still running when a token ends goes on in the configuration: `watch`, automata of earlier terminals that
would have been longer; when one of them accepts, the cut was wrong. Configurations of different terminals are not
merged, as what one of them could take must not inhibit another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wfsa.grammar.ir import Grammar
from wfsa.reference.automata import Dwa, Nwa, determinize, minimise
from wfsa.reference.lexer import Lexer, LexerState, alive
from wfsa.reference.terminal_dwa import Trie
from wfsa.reference.weights import TokenSets

Word = tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Where a configuration stands in the lexer: since the last cut, and what watches that and earlier ones."""

    main: LexerState
    watch: LexerState = frozenset()


@dataclass(frozen=True)
class Reading:
    token: int
    word: Word
    inhibited: frozenset[Word]


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
        watch = self.lexer.step(place.watch, byte)
        if self.lexer.accepts(watch):
            return None
        main = self.lexer.step(place.main, byte)
        if self.lexer.accepts(main) & self.shortest:
            ends = self.lexer.accepts(main)
            main = frozenset((t, s) for t, s in main if t in self.any or (t in self.shortest and t in ends))
        return Place(main, watch) if main else None


class Readings:
    """Of a place: every token in every way."""

    def __init__(
        self, rules: Rules, trie: Trie, tokens: Sequence[bytes], by_id: Mapping[int, Sequence[int]], end: int
    ) -> None:
        self._rules, self._trie, self._tokens, self._by_id, self._end = rules, trie, tokens, by_id, end
        self._text = [token for own in trie.own for token in own]

    def of(self, place: Place) -> list[Reading]:
        out: list[Reading] = []
        rules = self._rules
        for token in self._text:
            text = self._tokens[token]
            if self._is_void(place, text):
                continue
            out += [Reading(token, word, bars) for word, bars in self._first(place, text)]
        for t, tokens in self._by_id.items():
            rivals = [a for a, ids in self._by_id.items() if a not in (t, self._end)] if t != self._end else []
            for token in tokens:
                for word, bars in self._ended(place):
                    ties = {(*word, a) for a in rivals if token in self._by_id[a] and rules.inhibits(a, [1], t, 1)}
                    out.append(Reading(token, (*word, t), bars | ties))
        return out

    def _is_void(self, place: Place, text: bytes) -> bool:
        watch = place.watch
        for byte in text:
            watch = self._rules.lexer.step(watch, byte)
            if self._rules.lexer.accepts(watch):
                return True
        return False

    def _ended(self, place: Place) -> Iterator[tuple[Word, frozenset[Word]]]:
        """A cut before anything else is read; a place where nothing has been read needs none."""
        if place.main <= self._rules.lexer.start:
            yield (), frozenset()
        for t in self._rules.winners(place.main):
            yield self._letter(t), frozenset()

    def _first(self, place: Place, text: bytes) -> Iterator[tuple[Word, frozenset[Word]]]:
        """What the parser takes in place of the first terminal is known: `main` has no other."""
        if not place.main <= self._rules.lexer.start:
            for t in self._rules.winners(place.main):
                if not self._matches_longer(place, t, text):
                    yield from self._behind(self._letter(t), frozenset(), text)
        at = place.main
        ends: dict[int, list[int]] = {}
        for n, byte in enumerate(text):
            at = self._rules.lexer.step(at, byte)
            for t in self._rules.lexer.accepts(at):
                ends.setdefault(t, []).append(n + 1)
        yield from self._segment((), frozenset(), text, at, ends, known=True)

    def _matches_longer(self, place: Place, t: int, text: bytes) -> bool:
        if t in self._rules.any or t in self._rules.shortest:
            return False
        at = frozenset((a, s) for a, s in place.main if a not in self._rules.any)
        for byte in text:
            at = self._rules.lexer.step(at, byte)
            if self._rules.lexer.accepts(at):
                return True
        return False

    def _behind(self, word: Word, bars: frozenset[Word], text: bytes) -> Iterator[tuple[Word, frozenset[Word]]]:
        """From a cut on, with all terminals: which of them the parser takes is for the automata to say."""
        if not text:
            yield word, bars
            return
        at, ends = self._rules.lexer.start, dict[int, list[int]]()
        for n, byte in enumerate(text):
            at = self._rules.lexer.step(at, byte)
            for t in self._rules.lexer.accepts(at):
                ends.setdefault(t, []).append(n + 1)
        yield from self._segment(word, bars, text, at, ends, known=False)

    def _segment(
        self, word: Word, bars: frozenset[Word], text: bytes, at: LexerState, ends: dict[int, list[int]], *, known: bool
    ) -> Iterator[tuple[Word, frozenset[Word]]]:
        rules = self._rules
        always = {a for a in ends if known or a in rules.ignored}

        def barred(t: int, end: int | None) -> frozenset[Word] | None:
            """What inhibits t here; None: something that is always taken."""
            found = {a for a in ends if a != t and rules.inhibits(a, ends[a], t, end)}
            if rules.inhibits(t, ends.get(t, []), t, end):
                return None
            return None if found & always else bars | {(*word, a) for a in found}

        for t in sorted(set(ends) | alive(at)):
            for end in ends.get(t, []):
                more = barred(t, end)
                if more is not None:
                    yield from self._behind((*word, *self._letter(t)), more, text[end:])
            if t in alive(at) and self._goes_on(t, at):
                more = barred(t, None)
                if more is not None:
                    yield (*word, *self._letter(t)), more

    def _goes_on(self, t: int, at: LexerState) -> bool:
        words = self._rules.lexer.words[t]
        return words is not None and any(bool((words.to[s] >= 0).any()) for a, s in at if a == t)

    def _letter(self, t: int) -> Word:
        return () if t in self._rules.ignored else (t,)


@dataclass(frozen=True)
class ReadingAutomata:
    """Of a place: over the terminals of readings, and of what inhibits them."""

    readings: list[Reading]
    needed: Dwa[int]
    inhibited: Dwa[int]


def automata_of(readings: list[Reading], sets: TokenSets) -> ReadingAutomata:
    needed = [(one.word, number) for number, one in enumerate(readings)]
    inhibited = [(word, number) for number, one in enumerate(readings) for word in sorted(one.inhibited)]
    return ReadingAutomata(readings, _of_words(needed, sets), _of_words(inhibited, sets))


def _of_words(words: list[tuple[Word, int]], sets: TokenSets) -> Dwa[int]:
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
    return minimise(determinize(nwa, sets), sets)
