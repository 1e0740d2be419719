r"""Patterns with lazy quantifiers: the texts that Python's `re` would take, as a regular language.

Problem.  ``".*?"`` and ``".*"`` have the same words, but not the same first match: `re` tries ways of matching in an
order, and the first way that fits wins.  A lexer that takes the longest word needs a language whose longest word at a
place is that first match.

The language.  Let m(t) be the prefix of t that ``re.match(pattern, t)`` takes.  The answer is

    K  =  { w : m(w) = w }

Without look-aheads the ways to match a prefix w of t are the same in t and in w, in the same order.  So m(t) = w gives
m(w) = w; and if w' in K were a longer prefix of t, then m(w') = w too, so w' would not be in K.  Hence the longest word
of K at a place is what `re` takes there.  Greedy and lazy quantifiers and ordered alternatives may be mixed freely.
A look-ahead sees no further than the end of the word: exact where it is decided within the match.

Method.  The pattern becomes a program of reads and ordered jumps.  A state of the automaton is the ordered list of the
places where the program may be, without those behind a place where it has matched (K. Thompson 1968; R. Pike's virtual
machine; R. Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009).  Beside it go the derivatives of
what look-aheads still demand, and of the languages of look-behinds.  A turn of a loop that reads nothing ends the
loop, as in sre.  The automaton is minimised and solved for its language (:func:`~wfsa.grammar.regex.loops.eliminate`).

Invariant: exactly K, or GrammarError: too large, or empty.
Cost: a few states for a string or a comment, and then a millisecond or two.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from wfsa.errors import GrammarError
from wfsa.grammar.regex.derivative import step
from wfsa.grammar.regex.loops import Debts, eliminate, settle, step_debts
from wfsa.grammar.regex.nodes import Assertion, Choice, Loop, Node, Seq
from wfsa.grammar.regex.restrict import in_ranges, nullable
from wfsa.grammar.regular import (
    EPSILON,
    MAX_CODE_POINT,
    NOTHING,
    Alt,
    And,
    Cat,
    Chars,
    Literal,
    Minus,
    Ranges,
    Regular,
    Repeat,
    chars,
    normal_ranges,
)

MAX_PROGRAM = 4_000
MAX_STATES = 200
_TOO_LARGE = "it mixes lazy quantifiers with too much else; write a loop that cannot pass over its end, as in "
_REMEDY = r"/\"([^\"\\]|\\.)*\"/ or /\/\*([^*]|\*+[^*\/])*\*+\//"


class _Read(NamedTuple):
    ranges: Ranges
    after: int


class _Split(NamedTuple):
    ways: tuple[int, ...]  # the first is preferred


class _Turn(NamedTuple):
    """Into loop `number`, or on."""

    number: int
    body: int
    after: int
    lazy: bool


class _End(NamedTuple):
    """After a turn of loop `number`: to its next turn; on, if this turn read nothing."""

    number: int
    again: int
    after: int


class _Check(NamedTuple):
    what: Assertion
    after: int


_Instruction = _Read | _Split | _Turn | _End | _Check | None
_MATCH = 0
_PAST = -1  # has matched at an earlier place, if its look-aheads turn out to hold

_Thread = tuple[int, Debts]
_State = tuple[tuple[_Thread, ...], tuple[Regular, ...]]  # by preference; the look-behinds' languages, derived


def first_matches(node: Node) -> Regular:
    """K of the pattern that was parsed with its order kept."""
    return _Automaton(node).language()


class _Automaton:
    def __init__(self, node: Node) -> None:
        self.program: list[_Instruction] = [None]
        self.n_loops = 0
        self.start = self.emit(node, _MATCH)
        self.behind = list(dict.fromkeys(i.what for i in self.program if isinstance(i, _Check) and not i.what.ahead))
        sets: dict[Ranges, None] = {}
        for i in self.program:
            if isinstance(i, _Read):
                sets[i.ranges] = None
            elif isinstance(i, _Check):
                _sets(i.what.core, sets)
        self.classes = _classes(list(sets))

    # -- the program, written from its end -----------------------------------------------------------------------

    def add(self, instruction: _Instruction) -> int:
        if len(self.program) >= MAX_PROGRAM:
            raise GrammarError(_TOO_LARGE + _REMEDY)
        self.program.append(instruction)
        return len(self.program) - 1

    def emit(self, node: Node, after: int) -> int:
        match node:
            case Literal(data):
                for c in reversed(data.decode()):
                    after = self.add(_Read(((ord(c), ord(c)),), after))
                return after
            case Chars(ranges):
                return self.add(_Read(ranges, after))
            case Cat(parts) | Seq(parts):
                for part in reversed(parts):
                    after = self.emit(part, after)
                return after
            case Alt(parts) | Choice(parts):
                return self.add(_Split(tuple(self.emit(part, after) for part in parts)))
            case Repeat(body, low, high):
                return self.loop(body, low, high, False, after)
            case Loop(body, low, high, _, lazy):
                return self.loop(body, low, high, lazy, after)
            case Assertion():
                return self.add(_Check(node, after))
        raise AssertionError(f"not what a parser makes: {node!r}")

    def loop(self, body: Node, low: int, high: int | None, lazy: bool, after: int) -> int:
        start = after
        for _ in range(1 if high is None else high - low):
            number = self.n_loops = self.n_loops + 1
            end = self.add(_End(number, start, after))
            enter = self.add(None)
            self.program[enter] = _Turn(number, self.emit(body, end), after, lazy)
            if high is None:
                self.program[end] = _End(number, enter, after)
            start = enter
        for _ in range(low):
            start = self.emit(body, start)
        return start

    # -- the automaton -------------------------------------------------------------------------------------------

    def closure(self, seeds: list[_Thread], behind: tuple[Regular, ...]) -> tuple[_Thread, ...]:
        """The places that read or match, in order of preference, up to a match that is certain."""
        holds = {a: nullable(tree) != a.negative for a, tree in zip(self.behind, behind, strict=True)}
        out: dict[_Thread, None] = {}
        seen: set[tuple[int, Debts, frozenset[int]]] = set()
        stack = [(at, debts, frozenset[int]()) for at, debts in reversed(seeds)]
        while stack:
            item = stack.pop()
            if item in seen:
                continue
            seen.add(item)
            at, debts, idle = item  # idle: the loops whose present turn has read nothing
            if at in (_MATCH, _PAST):
                out[at, debts] = None
                if not debts:
                    break
                continue
            match self.program[at]:
                case _Read():
                    out[at, debts] = None
                case _Split(ways):
                    stack += [(way, debts, idle) for way in reversed(ways)]
                case _Turn(number, body, after, lazy):
                    turn, on = (body, debts, idle | {number}), (after, debts, idle - {number})
                    stack += [turn, on] if lazy else [on, turn]
                case _End(number, again, after):
                    stack.append((after if number in idle else again, debts, idle - {number}))
                case _Check(a, after):
                    if not a.ahead:
                        if holds[a]:
                            stack.append((after, debts, idle))
                        continue
                    owed = settle(a)
                    if owed is not None:
                        stack.append((after, debts | owed, idle))
        return tuple(out)

    def read(self, state: _State, c: int) -> _State | None:
        threads, behind = state
        seeds: list[_Thread] = []
        for at, debts in threads:
            instruction = self.program[at] if at > 0 else None
            if isinstance(instruction, _Read):
                if not in_ranges(c, instruction.ranges):
                    continue
                at = instruction.after
            elif not debts:
                continue  # a match that is over
            else:
                at = _PAST
            owed = step_debts(debts, c) if debts else debts
            if owed is not None:
                seeds.append((at, owed))
        behind = tuple(step(tree, c) for tree in behind)
        found = self.closure(seeds, behind)
        if found and found[-1] == (_PAST, frozenset()):
            found = found[:-1]
        return (found, behind) if found else None

    def matches(self, state: _State) -> bool:
        """Whether the first way that fits a text that ends here ends here as well."""
        for at, debts in state[0]:
            if at in (_MATCH, _PAST) and all(nullable(a.language) != a.negative for a in debts):
                return at == _MATCH
        return False

    def language(self) -> Regular:
        behind = tuple(a.language for a in self.behind)
        start: _State = (self.closure([(self.start, frozenset())], behind), behind)
        numbers = {start: 0}
        edges: list[dict[int, list[tuple[int, int]]]] = []
        todo = [start]
        for state in todo:  # grows while it is walked
            if len(todo) > MAX_STATES:
                raise GrammarError(_TOO_LARGE + _REMEDY)
            out: dict[int, list[tuple[int, int]]] = {}
            edges.append(out)
            for ranges in self.classes:
                target = self.read(state, ranges[0][0])
                if target is not None:
                    if target not in numbers:
                        numbers[target] = len(todo)
                        todo.append(target)
                    out.setdefault(numbers[target], []).extend(ranges)
        return _solved(edges, [self.matches(state) for state in todo])


def _sets(tree: Regular, out: dict[Ranges, None]) -> None:
    """Add the sets of characters that `tree` reads."""
    match tree:
        case Literal(data):
            out.update(dict.fromkeys(((ord(c), ord(c)),) for c in data.decode()))
        case Chars(ranges):
            out[ranges] = None
        case Cat(parts) | Alt(parts) | And(parts):
            for part in parts:
                _sets(part, out)
        case Repeat(body, _, _):
            _sets(body, out)
        case Minus(left, right):
            _sets(left, out)
            _sets(right, out)


def _classes(sets: list[Ranges]) -> list[list[tuple[int, int]]]:
    """Code points that no set tells apart, as ranges."""
    changes: dict[int, int] = {0: 0, MAX_CODE_POINT + 1: 0}  # at a code point: which sets begin or end
    for i, ranges in enumerate(sets):
        for low, high in ranges:
            changes[low] = changes.get(low, 0) ^ 1 << i
            changes[high + 1] = changes.get(high + 1, 0) ^ 1 << i
    classes: dict[int, list[tuple[int, int]]] = {}
    inside = 0
    for low, end in pairwise(sorted(changes)):
        inside ^= changes[low]
        classes.setdefault(inside, []).append((low, end - 1))
    return list(classes.values())


def _solved(edges: list[dict[int, list[tuple[int, int]]]], accepting: list[bool]) -> Regular:
    """The language of an automaton, by way of its minimal one."""
    alive = {n for n, yes in enumerate(accepting) if yes}
    size = -1
    while len(alive) > size:
        size = len(alive)
        alive |= {n for n, out in enumerate(edges) if not alive.isdisjoint(out)}
    if 0 not in alive:
        raise GrammarError("it matches no text: a look-around in it can never hold")
    kind = [int(yes) for yes in accepting]
    while True:
        merged: dict[tuple[int, frozenset[tuple[int, Ranges]]], int] = {}
        rows: list[dict[int, Ranges]] = []
        after = []
        for n, out in enumerate(edges):
            found: dict[int, list[tuple[int, int]]] = {}
            for to, ranges in out.items():
                if to in alive:
                    found.setdefault(kind[to], []).extend(ranges)
            rows.append({k: normal_ranges(ranges, MAX_CODE_POINT) for k, ranges in found.items()})
            after.append(merged.setdefault((kind[n], frozenset(rows[-1].items())), len(merged)))
        if len(merged) == len(set(kind)):
            break
        kind = after
    by_kind = {kind[n]: n for n in sorted(alive)}
    labels = {k: {to: chars(ranges) for to, ranges in rows[n].items()} for k, n in by_kind.items()}
    labels = {k: {to: label for to, label in out.items() if label != NOTHING} for k, out in labels.items()}
    exits: dict[int, Regular] = {k: EPSILON if accepting[n] else NOTHING for k, n in by_kind.items()}
    language = eliminate(labels, exits, kind[0])
    if language is None:
        raise GrammarError(_TOO_LARGE + _REMEDY)
    return language


