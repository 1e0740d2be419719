r"""Zero-width assertions (``^ $ \b (?=..) (?!..) (?<=..) (?<!..)``) compiled away, exactly.

Problem.  The trees of :mod:`wfsa.grammar.regular` denote sets of words; an assertion denotes a condition on what
stands to the left or to the right of a place.  The usual way out (refuse) loses patterns that people write every day:
``^(?!foo)``, ``^(?=.*\d).{8,}$``, ``^a|b$``.

Method.  The parser yields a regular tree where there is no assertion, and the nodes below elsewhere.
1. `expand` turns a node into branches: each a flat sequence of regular pieces and assertions
   (alternatives and short counted loops multiply out; the number of branches has a limit).
2. `resolve` turns one branch into one tree.  Let a look-ahead stand before the rest ``k`` of the branch: then

       (?=R) k   is   k & R.*            (?!R) k   is   k - R.*            (. with all characters)

   folding from the right; look-behinds mirror it, folding from the left.  ``^`` is "what is left is empty",
   ``$`` "what is right is empty".  Where look-behinds and look-aheads overlap the folds would cross; then an
   assertion that reaches no further than the piece beside it (``\b`` beside a word) is applied to that piece alone,
   which is exact in every context.
3. A loop over a body with assertions is a plain repetition if all of them are local in that sense;
   otherwise :mod:`wfsa.grammar.regex.loops` solves it as a system of equations.

Invariant: every function returns exactly the language, or raises GrammarError with the construct and its position.
Cost: linear in the pattern where there are only ``^`` and ``$`` at the edges; the product of alternatives otherwise.
Rejected: a marked alphabet with a projection at the end (exact and general, but it needs automata here).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wfsa.errors import GrammarError
from wfsa.grammar.regular import (
    ANY_CHAR,
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
    alt,
    cat,
    chars,
    minus,
    negate_ranges,
    repeat,
    star,
)

ANY_TEXT = star(ANY_CHAR)
MAX_BRANCHES = 512
MAX_UNROLL = 16


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on the text right (`ahead`) or left of a place.

    `loose`: the text only has to begin (end, for a look-behind) with a word of `core`; else it has to be one.
    """

    ahead: bool
    core: Regular
    loose: bool
    negative: bool
    what: str
    at: int

    @property
    def language(self) -> Regular:
        """All texts on that side for which the positive assertion holds."""
        if not self.loose:
            return self.core
        return cat(self.core, ANY_TEXT) if self.ahead else cat(ANY_TEXT, self.core)


@dataclass(frozen=True, slots=True)
class Seq:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    body: Node
    low: int
    high: int | None
    at: int
    lazy: bool = False


Node = Regular | Assertion | Seq | Choice | Loop
Item = Regular | Assertion | Loop  # what stands in a branch; a Loop there has high None and low 0


def start_of_text(at: int) -> Assertion:
    return Assertion(False, EPSILON, False, False, "^", at)


def end_of_text(at: int) -> Assertion:
    return Assertion(True, EPSILON, False, False, "$", at)


class _Unresolved(Exception):
    """An assertion whose condition reaches out of the branch that is being resolved."""

    def __init__(self, assertion: Assertion, why: str) -> None:
        super().__init__(why)
        self.assertion = assertion


def whole_language(node: Node, pattern: str) -> Regular:
    """The texts that `node` matches from end to end."""
    return _resolve_all(node, pattern, False, False)


def is_open_to_outside(node: Node, pattern: str) -> bool:
    """Whether what `node` matches can depend on text beyond its ends."""
    try:
        _resolve_all(node, pattern, True, True)
    except GrammarError:
        return True
    return False


def look_core(node: Node, ahead: bool, at_start: bool, pattern: str) -> tuple[Regular, bool]:
    """(core, loose) of a look-around with this body; see `Assertion`.  `at_start`: nothing can stand to its left."""
    if isinstance(node, Regular):
        return node, True
    if ahead:
        return _resolve_all(Seq((node, ANY_TEXT)), pattern, not at_start, False), False
    return _resolve_all(Seq((ANY_TEXT, node)), pattern, False, True), False


def _resolve_all(node: Node, pattern: str, left_open: bool, right_open: bool) -> Regular:
    try:
        return alt(*(resolve(branch, left_open, right_open, pattern) for branch in expand(node, pattern)))
    except _Unresolved as err:
        a = err.assertion
        raise GrammarError(
            f"{a.what} at offset {a.at} of the pattern {pattern!r} {err}; "
            "write the alternatives out, or move the assertion to the edge of the pattern"
        ) from None


# ---- lengths and nullability, in code points ---------------------------------------------------------------------


def lengths(tree: Regular) -> tuple[int, int | None]:
    """A lower and an upper bound (None: no bound) on the number of code points in the words of `tree`."""
    match tree:
        case Literal(data):
            n = sum(1 for b in data if b & 0xC0 != 0x80)
            return n, n
        case Cat(parts):
            low, high = 0, 0
            unbounded = False
            for p in parts:
                a, b = lengths(p)
                low += a
                if b is None:
                    unbounded = True
                else:
                    high += b
            return low, None if unbounded else high
        case Alt(parts) if parts:
            bounds = [lengths(p) for p in parts]
            highs = [b for _, b in bounds]
            return min(a for a, _ in bounds), None if None in highs else max(b for b in highs if b is not None)
        case Repeat(body, a, b):
            low, top = lengths(body)
            if b is None:
                return low * a, 0 if top == 0 else None
            return low * a, None if top is None else top * b
        case And(parts):
            bounds = [lengths(p) for p in parts]
            tops = [b for _, b in bounds if b is not None]
            return max(a for a, _ in bounds), min(tops) if tops else None
        case Minus(left, _):
            return lengths(left)
        case Alt():
            return 0, 0
    return 1, 1


def nullable(tree: Regular) -> bool:
    """Whether the empty word is in `tree`."""
    match tree:
        case Literal(data):
            return not data
        case Cat(parts) | And(parts):
            return all(nullable(p) for p in parts)
        case Alt(parts):
            return any(nullable(p) for p in parts)
        case Repeat(body, low, _):
            return low == 0 or nullable(body)
        case Minus(left, right):
            return nullable(left) and not nullable(right)
    return False


# ---- applying one assertion to the text beside it ------------------------------------------------------------------


def single_chars(tree: Regular) -> Ranges | None:
    """The ranges of a tree that is one code point, else None."""
    if isinstance(tree, Chars):
        return tree.ranges
    if isinstance(tree, Literal) and lengths(tree)[0] == 1:
        c = ord(tree.data.decode())
        return ((c, c),)
    return None


def in_ranges(c: int, ranges: Ranges) -> bool:
    """Whether the code point is in one of the ranges."""
    i = bisect_right(ranges, (c, MAX_CODE_POINT)) - 1
    return i >= 0 and c <= ranges[i][1]


def _common(a: Ranges, b: Ranges) -> list[tuple[int, int]]:
    """What is in both."""
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            out.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return out


def restrict(tree: Regular, a: Assertion) -> Regular:
    """The words of `tree` that satisfy `a`, when they are all that stands on its side."""
    if tree == NOTHING:
        return tree
    if tree == EPSILON or (not a.loose and a.core == EPSILON):
        if tree == EPSILON:
            return tree if nullable(a.language) != a.negative else NOTHING
        if not a.negative:
            return EPSILON if nullable(tree) else NOTHING
    if a.loose:
        first = single_chars(a.core)
        if first is not None:
            if not a.negative and tree == ANY_TEXT:
                return a.language
            return _restrict_char(tree, first, a)
    if a.negative:
        if isinstance(tree, Minus):
            return Minus(tree.left, alt(tree.right, a.language))
        return minus(tree, a.language)
    if tree == ANY_TEXT:
        return a.language
    parts = tree.parts if isinstance(tree, And) else (tree,)
    return And((*parts, a.language))


def _restrict_char(tree: Regular, allowed: Ranges, a: Assertion) -> Regular:
    """`restrict` for an assertion about the one character next to the place."""
    match tree:
        case Literal(data):
            if not data:
                return tree if a.negative else NOTHING
            text = data.decode()
            c = ord(text[0] if a.ahead else text[-1])
            return tree if in_ranges(c, allowed) != a.negative else NOTHING
        case Chars(ranges):
            keep = negate_ranges(allowed) if a.negative else allowed
            return chars(_common(ranges, keep))
        case Alt(parts):
            return alt(*(_restrict_char(p, allowed, a) for p in parts))
        case Repeat(body, low, high) if lengths(body)[0] >= 1:
            one = _restrict_char(body, allowed, a)
            more = repeat(body, max(low - 1, 0), None if high is None else high - 1)
            some = cat(one, more) if a.ahead else cat(more, one)
            return alt(EPSILON, some) if low == 0 and a.negative else some
        case Cat(parts):
            edge, rest = (parts[0], parts[1:]) if a.ahead else (parts[-1], parts[:-1])
            if lengths(edge)[0] >= 1:
                done = _restrict_char(edge, allowed, a)
                return cat(done, *rest) if a.ahead else cat(*rest, done)
            if isinstance(edge, Repeat) and edge.min == 0 and lengths(edge.body)[0] >= 1:
                some = _restrict_char(Repeat(edge.body, 1, edge.max), allowed, a)
                none = _restrict_char(cat(*rest), allowed, a)
                return alt(cat(some, *rest) if a.ahead else cat(*rest, some), none)
    if a.negative:
        return minus(tree, a.language)
    return And((tree, a.language))


# ---- branches --------------------------------------------------------------------------------------------------------


def expand(node: Node, pattern: str) -> list[list[Item]]:
    """`node` as a union of flat sequences."""
    match node:
        case Seq(items):
            branches: list[list[Item]] = [[]]
            for item in items:
                if isinstance(item, (Regular, Assertion)):
                    for b in branches:
                        b.append(item)
                    continue
                parts = expand(item, pattern)
                branches = [b + p for b in branches for p in parts]
                _check_branches(len(branches), pattern)
            return branches
        case Choice(parts):
            out = [branch for part in parts for branch in expand(part, pattern)]
            _check_branches(len(out), pattern)
            return out
        case Loop():
            return _expand_loop(node, pattern)
    return [[node]]


def _check_branches(n: int, pattern: str) -> None:
    if n > MAX_BRANCHES:
        raise GrammarError(
            f"the pattern {pattern!r} needs {n} alternatives to compile its assertions away, the limit is "
            f"{MAX_BRANCHES}; use fewer assertions inside groups"
        )


def _expand_loop(loop: Loop, pattern: str) -> list[list[Item]]:
    branches = expand(loop.body, pattern)
    if all(isinstance(item, Assertion) for branch in branches for item in branch):
        return [[]] if loop.low == 0 else branches  # repeating a condition adds nothing
    try:
        return [[repeat(alt(*(resolve(b, True, True, pattern) for b in branches)), loop.low, loop.high)]]
    except _Unresolved as err:
        a = err.assertion
        at_start = [b for b in branches if any(isinstance(item, Assertion) and is_edge(item, False) for item in b)]
        if at_start and (loop.low == 0 or all(_least(b) for b in at_start)):
            # A turn that begins at ^ can only be the first one (a turn that reads nothing may be left out).
            later = Choice(tuple(Seq(tuple(b)) for b in branches if b not in at_start))
            more = Loop(later, max(loop.low - 1, 0), None if loop.high is None else loop.high - 1, loop.at)
            first = [[*b, *rest] for rest in expand(more, pattern) for b in at_start]
            return first + (expand(replace(loop, body=later), pattern))
        if loop.high is None:
            if loop.low > MAX_UNROLL:
                raise GrammarError(
                    f"{a.what} at offset {a.at} of the pattern {pattern!r} is repeated {loop.low} times or more; the "
                    f"limit for a repetition with an assertion is {MAX_UNROLL}"
                ) from None
            again = Loop(loop.body, 0, None, loop.at)
            return [[*head, again] for head in expand(Seq((loop.body,) * loop.low), pattern)]
        if loop.high > MAX_UNROLL:
            raise GrammarError(
                f"{a.what} at offset {a.at} of the pattern {pattern!r} is repeated up to {loop.high} times; the limit "
                f"for a repetition with an assertion is {MAX_UNROLL}, or no upper bound"
            ) from None
        out = [b for n in range(loop.low, loop.high + 1) for b in expand(Seq((loop.body,) * n), pattern)]
        _check_branches(len(out), pattern)
        return out


def _places(
    branch: Sequence[Item],
) -> tuple[list[Regular | Loop], list[list[Assertion]], list[list[Assertion]]]:
    """(pieces, behind, ahead): pieces[i] stands left of the place i, pieces[i + 1] right of it."""
    pieces: list[Regular | Loop] = [EPSILON]
    behind: list[list[Assertion]] = []
    ahead: list[list[Assertion]] = []
    run: list[Regular] = []  # what the last piece will be

    def close() -> None:
        if run:
            pieces[-1] = cat(*run)
            run.clear()

    fresh = False  # is the last place still without text to its right
    for item in branch:
        if isinstance(item, Regular) and not isinstance(pieces[-1], Loop):
            run.append(item)
            fresh = False
            continue
        if not (isinstance(item, Assertion) and fresh):
            close()
            pieces.append(EPSILON)
            behind.append([])
            ahead.append([])
        fresh = isinstance(item, Assertion)
        if isinstance(item, Assertion):
            (ahead if item.ahead else behind)[-1].append(item)
        elif isinstance(item, Loop):
            pieces[-1] = item
        else:
            run.append(item)
    close()
    return pieces, behind, ahead


def local_items(branch: Sequence[Item]) -> list[Item] | None:
    """The body of a loop with its local look-behinds applied; None if a ``^`` in it can never hold."""
    pieces, behind, ahead = _places(branch)
    for i, asked in enumerate(behind):
        if any(_is_edge(a) for a in asked) and any(isinstance(p, Regular) and not nullable(p) for p in pieces[:i + 1]):
            return None
    _apply_local(pieces, behind, ahead, True, False)
    out: list[Item] = [pieces[0]]
    for piece, before, after in zip(pieces[1:], behind, ahead, strict=True):
        out += [*before, *after, piece]
    return [item for item in out if item != EPSILON]


def _least(branch: Sequence[Item]) -> int:
    """A lower bound on what a branch reads."""
    return sum(lengths(item)[0] for item in branch if isinstance(item, Regular))


def resolve(branch: Sequence[Item], left_open: bool, right_open: bool, pattern: str) -> Regular:
    """One branch as one tree.  An open side may have any text beyond it, and nothing may be asked of that text."""
    pieces, behind, ahead = _places(branch)
    if not behind:
        last = pieces[0]
        assert isinstance(last, Regular)
        return last

    n = len(behind)
    # ^ and $ fix a whole side to the empty text, whatever else is asked there.
    for i in range(n):
        if any(_is_edge(a) for a in behind[i]) and not _empty(pieces, range(i + 1), behind[i], left_open):
            return NOTHING
        if any(_is_edge(a) for a in ahead[i]) and not _empty(pieces, range(i + 1, n + 1), ahead[i], right_open):
            return NOTHING
    _apply_local(pieces, behind, ahead, left_open, right_open)

    pending_behind = [i for i in range(n) if behind[i]]
    pending_ahead = [i for i in range(n) if ahead[i] or isinstance(pieces[i], Loop)]
    if isinstance(pieces[n], Loop):
        pending_ahead.append(n)
    if left_open and pending_behind:
        raise _Unresolved(behind[pending_behind[0]][0], "looks at text before the group or look-around it stands in")
    if right_open and pending_ahead:
        i = pending_ahead[0]
        found = ahead[i] if i < n else []
        raise _Unresolved(
            found[0] if found else Assertion(True, EPSILON, True, False, "an assertion in a repetition", 0),
            "looks at text after the group or look-around it stands in",
        )
    last_behind = pending_behind[-1] if pending_behind else -1
    if any(i < last_behind or (i == last_behind and isinstance(pieces[i], Loop)) for i in pending_ahead):
        raise _Unresolved(behind[last_behind][0], "looks back over text that a look-ahead before it looks at")
    prefix = pieces[0]
    for i in range(last_behind + 1):
        assert isinstance(prefix, Regular)
        for a in behind[i]:
            prefix = restrict(prefix, a)
        if i < last_behind:
            piece = pieces[i + 1]
            assert isinstance(piece, Regular)
            prefix = cat(prefix, piece)
    left = [prefix, *pieces[last_behind + 1:]] if last_behind >= 0 else pieces
    conditions = ahead[max(last_behind, 0):]
    tail = _before(left[-1], EPSILON, pattern)
    for piece, asked in zip(reversed(left[:-1]), reversed(conditions), strict=True):
        for a in asked:
            tail = restrict(tail, a)
        tail = _before(piece, tail, pattern)
    return tail


def is_edge(node: Node, ahead: bool) -> bool:
    """Whether `node` is plain ``^`` (or, with `ahead`, plain ``$``)."""
    return isinstance(node, Assertion) and node.ahead == ahead and _is_edge(node)


def _is_edge(a: Assertion) -> bool:
    return not a.negative and not a.loose and a.core == EPSILON


def _empty(pieces: list[Regular | Loop], side: range, asked: list[Assertion], is_open: bool) -> bool:
    """Make a side empty and drop the edge assertions from `asked`; False if it cannot be empty."""
    for j in side:
        piece = pieces[j]
        if isinstance(piece, Regular) and not nullable(piece):
            return False
    if is_open:
        raise _Unresolved(next(a for a in asked if _is_edge(a)), "looks at text outside the group it stands in")
    for j in side:
        pieces[j] = EPSILON
    asked[:] = [a for a in asked if not _is_edge(a)]
    return True


def _apply_local(
    pieces: list[Regular | Loop], behind: list[list[Assertion]], ahead: list[list[Assertion]],
    left_open: bool, right_open: bool,
) -> None:
    """Apply the assertions that reach no further than the piece beside them, if folding alone would not do."""
    behinds = [i for i, asked in enumerate(behind) if asked]
    aheads = [i for i, asked in enumerate(ahead) if asked]
    crossing = bool(behinds and aheads and aheads[0] < behinds[-1])
    loops = any(isinstance(p, Loop) for p in pieces)
    for places, all_asked, needed, step in (
        (behinds, behind, left_open or crossing or loops, 0),
        (aheads, ahead, right_open or crossing or loops, 1),
    ):
        if not needed:
            continue
        for i in places:
            kept: list[Assertion] = []
            for a in all_asked[i]:
                piece = pieces[i + step]
                reach = lengths(a.core)[1]
                if isinstance(piece, Loop) or reach is None:
                    kept.append(a)
                elif lengths(piece)[0] >= reach + (not a.loose):
                    # A strict condition on at most `reach` characters fails on every longer text.
                    if a.loose:
                        pieces[i + step] = restrict(piece, a)
                    elif not a.negative:
                        pieces[i + step] = NOTHING
                else:
                    kept.append(a)
            all_asked[i] = kept


def _before(piece: Regular | Loop, tail: Regular, pattern: str) -> Regular:
    if isinstance(piece, Regular):
        return cat(piece, tail)
    from wfsa.grammar.regex.loops import loop_before  # only patterns with assertions inside a loop need it

    return loop_before(piece, tail, pattern)
