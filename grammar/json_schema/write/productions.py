"""Rules for JSON objects, arrays and constants, shaped for the LR automaton behind them.

Input: symbols of keys and values.  Output: rules in a `Productions`; equal constructions are made once.

An object with the members k1: v1 ... kn: vn (in this order, some optional) is a left-recursive chain.  P_i derives an
object that is open, has at least one member, and holds nothing after member i:

    P_i -> P_(i-1) , k_i v_i        P_i -> P_(i-1)   if i is optional        P_i -> { k_i v_i   if all before it are
    O   -> P_n }                    O   -> { }       if all are optional

That is linear in n, where the powerset of optional members is not, and left recursion keeps the parser's stack flat.
Members of any other name, in any number, loop on the last one: ``P_n -> P_n , kx vx``.
Very many optional members are a list with a set beside the parser instead (`Unordered`), which is ordered here.

An array is the same with counts.  Runs of more than `MAX_CHAIN` equal items double: ``D_0 -> , v`` and
``D_(j+1) -> D_j D_j``.  An optional run of up to m takes its highest power first, so that the parser never guesses how
many items will come:

    U_m -> D_j | D_j U_(m - 2^j) | U_(2^j - 1)          with 2^j <= m < 2^(j+1)

A right-hand side is never empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from wfsa.errors import LimitError

from ...allowance import check
from ...ir import MAX_GROUPS, Grammar, Marks, Terminal, Unordered
from ...regular import Literal, Regular, Words, alt
from ..domains.arrays import Distinct
from ..spelling.finite import scalar_spellings
from .lexemes import Lexemes

MAX_CHAIN = 64

MAX_OPTIONAL = 1000  # members of a chain: what may follow is every later one, so its tables are its square

MAX_STATES = 5000  # of one object or array that counts

MARKS: dict[Distinct, Marks] = {"endless": Marks.DIFFERS, "exhaustible": Marks.MAY_RUN_OUT}

Member = tuple[int, int, bool]  # key, value, is it required
Choice = tuple[int, int]  # value, bits
Options = tuple[int, tuple[Choice, ...], bool]  # key, choices, is it required
Extra = tuple[int, tuple[Choice, ...]]  # key of any other name, choices
State = tuple[int, int, int]  # members so far, bits, how many declared ones are passed (-1: nothing is written)


class Asked(NamedTuple):
    """What is asked of an object's members beside their keys and values."""

    low: int = 0
    high: int | None = None  # how many members
    wanted: int = 0  # conditions that some member has to meet (bits)
    ordered: bool = True  # in the declared order, all others last


class Productions:
    """Terminals, nonterminals and rules under construction; symbols are those of :mod:`wfsa.grammar.ir`."""

    __slots__ = (
        "_made", "close_array", "close_object", "comma", "distinct", "keys", "lexemes", "names",
        "open_array", "open_object", "origins", "rules", "terminals", "unordered",
    )  # fmt: skip

    def __init__(self, lexemes: Lexemes) -> None:
        self.lexemes = lexemes
        self.terminals: list[Terminal] = []
        self.names: list[str] = []
        self.origins: list[str] = []
        self.rules: list[tuple[int, tuple[int, ...]]] = []
        self.unordered: list[Unordered] = []
        self.distinct: list[tuple[int, Marks]] = []
        self.keys: dict[str, int | None] = {}
        self._made: dict[Any, int] = {}
        self.open_object = self.terminal("{", lexemes.open_object, "")
        self.close_object = self.terminal("}", lexemes.close_object, "")
        self.comma = self.terminal(",", lexemes.comma, "")
        self.open_array = self.terminal("[", lexemes.open_array, "")
        self.close_array = self.terminal("]", lexemes.close_array, "")

    def terminal(
        self, name: str, pattern: Regular, origin: str, units: tuple[int, int | None] | None = None
    ) -> int:
        self.terminals.append(Terminal(name, pattern, 0, origin, units))
        return len(self.terminals) - 1

    def nonterminal(self, name: str, origin: str) -> int:
        self.names.append(name)
        self.origins.append(origin)
        return -len(self.names)

    def build(self, start: int, white_space: tuple[int, int] | None) -> Grammar:
        return Grammar(
            tuple(self.terminals), tuple(self.names), tuple(self.rules), ~start, "cfg", (), tuple(self.origins),
            tuple(self.unordered), tuple(self.distinct), white_space,
        )  # fmt: skip

    @property
    def key_terminals(self) -> set[int]:
        """All terminals of keys with their colons."""
        kinds = ("key", "key class", "same key")
        made = {n for key, n in self._made.items() if isinstance(key, tuple) and key[0] in kinds}
        return made.union(n for n in self.keys.values() if n is not None)

    # ---- keys and scalars ----------------------------------------------------------------------------------------

    def key(self, name: str, origin: str) -> int | None:
        """The terminal of a member's name and its colon; None if no JSON text can spell the name."""
        try:
            return self.keys[name]
        except KeyError:
            pass
        got: int | None = None
        try:
            got = self.terminal(f'"{name}":', self.lexemes.key(name), origin)
        except UnicodeEncodeError:
            pass  # a lone surrogate
        self.keys[name] = got
        return got

    def same_key(self, key: int, number: int) -> int:
        """The terminal of a key; where the parser has to tell pairs of one key apart, each has a number."""
        if not number:
            return key
        copy = ("same key", key, number)
        got = self._made.get(copy)
        if got is None:
            got = self._made[copy] = len(self.terminals)
            self.terminals.append(replace(self.terminals[key]))
        return got

    def other_key(self, names: tuple[str, ...], origin: str) -> int:
        """The terminal of all names but these."""
        key = ("key", frozenset(names))
        got = self._made.get(key)
        if got is None:
            pattern = self.lexemes.other_key(names) if names else self.lexemes.any_key
            got = self._made[key] = self.terminal("other key:" if names else "key:", pattern, origin)
        return got

    def class_key(self, texts: Regular, origin: str) -> int:
        """The terminal of all names in a language of texts."""
        key = ("key class", texts)
        got = self._made.get(key)
        if got is None:
            got = self._made[key] = self.terminal("key of a class:", self.lexemes.key_of(texts), origin)
        return got

    def scalar(
        self, key: object, name: str, pattern: Regular, origin: str, units: tuple[int, int | None] | None = None
    ) -> int:
        """The terminal of a set of scalars, which `key` identifies; `units`: the bounds of a length that is counted."""
        got = self._made[key] = self.terminal(name, pattern, origin, units)
        return got

    def made(self, key: object) -> int | None:
        """The symbol that was made for `key`."""
        return self._made.get(key)

    def one_of(self, spellings: tuple[bytes, ...], origin: str, every_spelling: bool = False) -> int:
        """The terminal of a finite set of scalars, spelled like that, or in every way, as where that is barred."""
        every_spelling = every_spelling or any(map(self.lexemes.is_barred, spellings))
        key = (0, every_spelling, spellings)
        got = self._made.get(key)
        if got is None:
            tree: Regular
            if every_spelling:
                tree = alt(*map(self.lexemes.constant, spellings))
            else:
                tree = Words(frozenset(spellings)) if len(spellings) > 1 else Literal(spellings[0])
            text = spellings[0].decode()
            name = text if len(spellings) == 1 else f"one of {len(spellings)} values"
            got = self.scalar(key, name, self.lexemes.glued(tree), origin)
        return got

    # ---- unions --------------------------------------------------------------------------------------------------

    def union(self, parts: tuple[int, ...], origin: str) -> int:
        """The symbol that derives what any of `parts` derives."""
        if len(parts) == 1:
            return parts[0]
        got = self._made.get(parts)
        if got is None:
            got = self._made[parts] = self.nonterminal("value", origin)
            self.rules += [(~got, (part,)) for part in parts]
        return got

    def anything(self, scalars: int) -> int:
        """Any JSON value; `scalars` is the terminal of all of them that are no objects and arrays."""
        got = self._made.get("anything")
        if got is None:
            got = self._made["anything"] = self.nonterminal("any value", "")
            parts = scalars, self.object((), (self.other_key((), ""), got), ""), self.array((), got, 0, None, "")
            self.rules += [(~got, (part,)) for part in parts]
        return got

    def _begin(self, key: object, name: str, origin: str, lhs: int | None) -> tuple[int, bool]:
        """The symbol of an object or array that is to be made, and whether the one of `key` will do.

        It will not do for a symbol that is given: that one needs rules of its own.
        """
        got = self._made.get(key) if lhs is None else None
        if got is not None:
            return got, True
        return self.nonterminal(name, origin) if lhs is None else lhs, False

    # ---- objects -------------------------------------------------------------------------------------------------

    def object(
        self, members: tuple[Member, ...], extra: tuple[int, int] | None, origin: str, lhs: int | None = None,
        ordered: bool = True,
    ) -> int:  # fmt: skip
        """An object of `members`, then of `extra` (key, value) in any number; `ordered`: else all in any order.

        `lhs` is used if given.
        """
        if not ordered or sum(not required for *_, required in members) > MAX_OPTIONAL:
            options = tuple((key, ((value, 0),), required) for key, value, required in members)
            extras = () if extra is None else ((extra[0], ((extra[1], 0),)),)
            return self.listed_object(options, extras, Asked(ordered=ordered), origin, lhs)
        key = (members, extra)
        lhs, known = self._begin(key, "object", origin, lhs)
        if known:
            return lhs
        self._made.setdefault(key, lhs)
        brace, comma, names, rules = self.open_object, self.comma, self.names, self.rules
        at = 0  # number + 1 of the last P; 0 if nothing can have been written so far
        optional = True  # is every member so far optional
        for k, v, required in members:
            names.append("members")
            self.origins.append(origin)
            p = len(names) - 1
            if at:
                rules.append((p, (-at, comma, k, v)))
                if not required:
                    rules.append((p, (-at,)))
            if optional:
                rules.append((p, (brace, k, v)))
                optional = not required
            at = p + 1
        if extra is not None:
            k, v = extra
            if not at:
                at = -self.nonterminal("members", origin)
            rules.append((at - 1, (-at, comma, k, v)))
            if optional:
                rules.append((at - 1, (brace, k, v)))
        if at:
            rules.append((~lhs, (-at, self.close_object)))
        if optional:
            rules.append((~lhs, (brace, self.close_object)))
        return lhs

    def object_that_counts(
        self, members: tuple[Options, ...], extras: tuple[Extra, ...], asked: Asked, origin: str, lhs: int | None = None
    ) -> int:
        """An object that is asked for a number of members, or for conditions that some of them meet.

        Few members in order are spelled out, a nonterminal for each count and set of conditions; more, and those in any
        order, are a list with a set beside the parser.
        """
        if asked.ordered:
            key = ("state", members, extras, asked)
            lhs, known = self._begin(key, "object", origin, lhs)
            if known or self._spelled_out(members, extras, asked, origin, lhs):
                self._made.setdefault(key, lhs)
                return lhs
        return self.listed_object(members, extras, asked, origin, lhs)

    def listed_object(
        self, members: tuple[Options, ...], extras: tuple[Extra, ...], asked: Asked, origin: str, lhs: int | None = None
    ) -> int:
        """The same as a list with a set of members beside the parser (`Unordered`).

        Raises LimitError for more conditions than such a list can have.
        """
        low, high, wanted, ordered = asked
        if wanted.bit_count() > MAX_GROUPS:
            raise LimitError(f"more than {MAX_GROUPS} conditions on some property of one object at {origin}")
        key = ("listed", members, extras, asked)
        lhs, known = self._begin(key, "object", origin, lhs)
        if known:
            return lhs
        self._made.setdefault(key, lhs)
        needed = sum(required for _, _, required in members)
        if not needed and not low and not wanted:
            self.rules.append((~lhs, (self.open_object, self.close_object)))
        if high == 0 or (not members and not extras):
            return lhs
        body, rest = self.nonterminal("members", origin), self.nonterminal("members", origin)
        met: list[tuple[int, int]] = []  # pair, conditions

        def pairs(k: int, choices: tuple[Choice, ...]) -> tuple[int, ...]:
            made = []
            for number, (v, bits) in enumerate(choices):
                pair = self.nonterminal("member", origin)
                self.rules += [(~pair, (self.same_key(k, number), v)), (~body, (pair, rest))]
                made.append(~pair)
                met.append((~pair, bits))
            return tuple(made)

        listed = tuple(pairs(k, choices) for k, choices, _ in members)
        for k, choices in extras:
            pairs(k, choices)
        self.rules += [
            (~rest, (self.close_object,)),
            (~rest, (self.comma, body)),
            (~lhs, (self.open_object, body)),
        ]
        conditions = [i for i in range(wanted.bit_length()) if wanted >> i & 1]
        groups = tuple(tuple(pair for pair, bits in met if bits >> i & 1) for i in conditions)
        required = tuple(required for _, _, required in members)
        self.unordered.append(Unordered(~body, ~rest, listed, required, low, high, groups, ordered))
        return lhs

    def _spelled_out(
        self, members: tuple[Options, ...], extras: tuple[Extra, ...], asked: Asked, origin: str, lhs: int
    ) -> bool:
        """Make the rules of an object in the declared order; False, and none, if that takes too many states."""
        low, high, wanted, _ = asked
        cap = low if high is None else high
        begin: State = 0, 0, -1  # nothing written
        needs_some = any(required for _, _, required in members)

        def moves(state: State) -> Iterator[tuple[tuple[int, ...], State]]:
            count, bits, passed = state

            def written(k: int, choices: tuple[Choice, ...], passed: int) -> Iterator[tuple[tuple[int, ...], State]]:
                if high is None or count < high:
                    for v, met in choices:
                        yield (k, v), (min(count + 1, cap), bits | met, passed)

            for i in range(max(passed, 0), len(members)):
                k, choices, required = members[i]
                yield from written(k, choices, i + 1)
                if required:
                    break
                if state is not begin:  # pass over it
                    yield (), (count, bits, i + 1)
                    break
            for k, choices in extras:
                yield from written(k, choices, max(passed, 0))

        def is_end(state: State) -> bool:
            count, bits, passed = state
            complete = passed == len(members) or (state is begin and not needs_some)
            return complete and count >= low and bits & wanted == wanted

        n, n_rules = len(self.names), len(self.rules)
        if self.by_states(begin, moves, is_end, True, origin, lambda: lhs) is not None:
            return True
        del self.names[n:], self.origins[n:], self.rules[n_rules:]
        return False

    def by_states(
        self, begin: Any, moves: Callable[[Any], Iterable[tuple[tuple[int, ...], Any]]], is_end: Callable[[Any], bool],
        is_object: bool, origin: str, in_advance: Callable[[], int | None],
        mark: Callable[[Any], Marks | None] = lambda state: None,
    ) -> int | None:  # fmt: skip
        """An object or array as an automaton over its members or items, a nonterminal for each state.

        `moves` of a state are (what is written, next state): () to go on without a member.  None leads back to `begin`.
        `in_advance` returns the nonterminal that the whole got while `moves` made its parts.  It is called after the
        last call of `moves`, since a part may refer back to the whole.
        `mark`: what the runtime has to know about the items up to a state.

        Returns None after `MAX_STATES` states.
        """
        opening, closing = self.open_array, self.close_array
        if is_object:
            opening, closing = self.open_object, self.close_object
        states: dict[Any, int] = {}
        for state in (todo := [begin]):  # grows while it is walked
            before = (opening,) if state is begin else (states[state], self.comma)
            for written, to in moves(state):
                if to not in states:
                    if len(states) >= MAX_STATES:
                        return None
                    states[to] = self.nonterminal("members" if is_object else "items", origin)
                    marked = mark(to)
                    if marked is not None:
                        self.distinct.append((~states[to], marked))
                    todo.append(to)
                self.rules.append((~states[to], (*before, *written) if written else before[:1]))
        lhs = in_advance()
        if lhs is None:
            lhs = self.nonterminal("object" if is_object else "array", origin)
        self.rules += [(~lhs, (p, closing)) for state, p in states.items() if is_end(state)]
        if is_end(begin):
            self.rules.append((~lhs, (opening, closing)))
        return lhs

    # ---- arrays --------------------------------------------------------------------------------------------------

    def array(
        self, prefix: tuple[int, ...], rest: int | None, low: int, high: int | None, origin: str,
        lhs: int | None = None, distinct: Distinct = "no",
    ) -> int:  # fmt: skip
        """An array of `low` to `high` items, the first ones out of `prefix`, all others `rest`; low <= high.

        `distinct`: must no two of them be equal, and may the values that they can have run out?
        `rest` is None only if `high` is at most ``len(prefix)``.
        """
        key = ("array", prefix, rest, low, high, distinct)
        lhs, known = self._begin(key, "array", origin, lhs)
        if known:
            return lhs
        self._made.setdefault(key, lhs)
        comma, close, rules = self.comma, self.close_array, self.rules
        if low == 0:
            rules.append((~lhs, (self.open_array, close)))
        if high == 0:
            return lhs
        head = max(len(prefix), 1)
        if high is not None:
            head = min(head, high)
        at = 0
        for i in range(head):
            item = prefix[i] if i < len(prefix) else rest
            assert item is not None
            at = self._step((self.open_array, item) if not at else (at, comma, item), origin, distinct)
            if i + 1 >= low and (i + 1 < head or high == head):
                rules.append((~lhs, (at, close)))
        if high == head:
            return lhs
        assert rest is not None
        # `head` items are written; `more` to `most` have to follow.
        more, most = max(low - head, 0), None if high is None else high - head
        if more <= MAX_CHAIN:
            for _ in range(more):
                at = self._step((at, comma, rest), origin, distinct)
        else:
            for j in range(more.bit_length() - 1, -1, -1):
                if more >> j & 1:
                    at = self._step((at, self._power(rest, j, origin, distinct)), origin, distinct)
        if most is None:
            rules.append((~at, (at, comma, rest)))
            rules.append((~lhs, (at, close)))
        elif most - more <= MAX_CHAIN:
            rules.append((~lhs, (at, close)))
            for _ in range(most - more):
                at = self._step((at, comma, rest), origin, distinct)
                rules.append((~lhs, (at, close)))
        else:
            rules.append((~lhs, (at, close)))
            rules.append((~lhs, (at, self._up_to(rest, most - more, origin, distinct), close)))
        return lhs

    def _step(self, rhs: tuple[int, ...], origin: str, distinct: Distinct) -> int:
        check()
        p = self.nonterminal("items", origin)
        if distinct != "no":
            self.distinct.append((~p, MARKS[distinct]))
        self.rules.append((~p, rhs))
        return p

    def _power(self, item: int, j: int, origin: str, distinct: Distinct) -> int:
        """``, item`` 2^j times."""
        key = ("power", item, j, distinct)
        got = self._made.get(key)
        if got is None:
            if j == 0:
                rhs: tuple[int, ...] = (self.comma, item)
            else:
                half = self._power(item, j - 1, origin, distinct)
                rhs = half, half
            got = self._made[key] = self._step(rhs, origin, distinct)
        return got

    def _up_to(self, item: int, m: int, origin: str, distinct: Distinct) -> int:
        """``, item`` once to m times."""
        if m == 1:
            return self._power(item, 0, origin, distinct)
        key = ("up to", item, m, distinct)
        got = self._made.get(key)
        if got is None:
            j = m.bit_length() - 1
            whole = self._power(item, j, origin, distinct)
            got = self._made[key] = self.nonterminal("items", origin)
            self.rules.append((~got, (whole,)))
            if m > 1 << j:
                self.rules.append((~got, (whole, self._up_to(item, m - (1 << j), origin, distinct))))
            self.rules.append((~got, (self._up_to(item, (1 << j) - 1, origin, distinct),)))
        return got

    # ---- constants -----------------------------------------------------------------------------------------------

    def constant(
        self, value: Any, every_spelling: bool, any_order: bool, origin: str, made: dict[int, int | None] | None = None
    ) -> int | None:
        """One value; None if no JSON text spells it.

        `made` maps ids of lists and dicts within this value to their symbols: Python values may share parts, and a
        value whose parts each hold another part twice has a text that doubles with each level.
        """
        check()
        made = {} if made is None else made
        if not isinstance(value, (list, dict)):
            spellings = scalar_spellings(value)
            return self.one_of(spellings, origin, every_spelling) if spellings else None
        if id(value) not in made:
            made[id(value)] = self._container(value, every_spelling, any_order, origin, made)
        return made[id(value)]

    def _container(
        self, value: Any, every_spelling: bool, any_order: bool, origin: str, made: dict[int, int | None]
    ) -> int | None:
        if isinstance(value, list):
            items: list[int] = []
            for v in value:
                item = self.constant(v, every_spelling, any_order, origin, made)
                if item is None:
                    return None
                items.append(item)
            return self.array(tuple(items), None, len(items), len(items), origin)
        members: list[Member] = []
        for name, v in value.items():
            key, item = self.key(name, origin), self.constant(v, every_spelling, any_order, origin, made)
            if key is None or item is None:
                return None
            members.append((key, item, True))
        return self.object(tuple(members), None, origin, ordered=not any_order or len(members) < 2)
