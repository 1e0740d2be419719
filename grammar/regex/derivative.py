"""Derivatives by code point of trees of characters (Brzozowski 1964), and whether a tree has a word."""

from __future__ import annotations

from functools import lru_cache

from ..regular import (
    EPSILON,
    MAX_CODE_POINT,
    NOTHING,
    Alt,
    And,
    Cat,
    Chars,
    Literal,
    Minus,
    Regular,
    Repeat,
    alt,
    both,
    cat,
    minus,
    repeat,
)
from .restrict import in_ranges, nullable

MAX_WORK = 3_000  # nodes of trees of which derivatives are taken: some hundredths of a second


def step(tree: Regular, c: int) -> Regular:
    """What may follow the code point `c` in the words of `tree`."""
    match tree:
        case Literal(data):
            text = data.decode()
            return Literal(text[1:].encode()) if text and ord(text[0]) == c else NOTHING
        case Chars(ranges):
            return EPSILON if in_ranges(c, ranges) else NOTHING
        case Alt(parts):
            return alt(*(step(p, c) for p in parts))
        case And(parts):
            taken = [step(p, c) for p in parts]
            return NOTHING if NOTHING in taken else both(*dict.fromkeys(taken))
        case Minus(left, right):
            first = step(left, c)
            return NOTHING if first == NOTHING else minus(first, step(right, c))
        case Cat(parts):
            rest = cat(*parts[1:])
            out = cat(step(parts[0], c), rest)
            return alt(out, step(rest, c)) if nullable(parts[0]) else out
        case Repeat(body, low, high):
            more = repeat(body, 0 if nullable(body) else max(low - 1, 0), None if high is None else high - 1)
            return cat(step(body, c), more)
    raise AssertionError(f"not a tree of characters: {tree!r}")


def add_cuts(tree: Regular, found: set[int]) -> None:
    """Add the code points at which the derivative of `tree` can change."""
    match tree:
        case Literal(data):
            if data:
                c = ord(data.decode()[0])
                found.update((c, c + 1))
        case Chars(ranges):
            for lo, hi in ranges:
                found.update((lo, hi + 1))
        case Cat(parts):
            for p in parts:
                add_cuts(p, found)
                if not nullable(p):
                    return
        case Alt(parts) | And(parts):
            for p in parts:
                add_cuts(p, found)
        case Repeat(body, _, _):
            add_cuts(body, found)
        case Minus(left, right):
            add_cuts(left, found)
            add_cuts(right, found)


@lru_cache(maxsize=4096)
def is_empty(tree: Regular) -> bool:
    """Whether a tree is seen to have no word, after some work on its derivatives.

    The derivatives that are met first lead on from the one that was met last: a word, if there is one, is near.
    """
    known = {tree}
    todo = [tree]
    work = 0
    while todo:
        at = todo.pop()
        if nullable(at) or not _is_restricted(at):
            return False
        found = {0}
        add_cuts(at, found)
        work += len(found) * n_nodes(at)
        if work > MAX_WORK:
            return False
        for c in sorted(found):
            following = step(at, c) if c <= MAX_CODE_POINT else NOTHING
            if following != NOTHING and following not in known:
                known.add(following)
                todo.append(following)
    return True


def is_of_characters(tree: Regular) -> bool:
    """Whether derivatives of a tree can be taken."""
    match tree:
        case Literal() | Chars():
            return True
        case And(parts) | Cat(parts) | Alt(parts):
            return all(map(is_of_characters, parts))
        case Repeat(body):
            return is_of_characters(body)
        case Minus(left, right):
            return is_of_characters(left) and is_of_characters(right)
    return False


def n_nodes(tree: Regular) -> int:
    """The size of a tree."""
    match tree:
        case And(parts) | Cat(parts) | Alt(parts):
            return 1 + sum(map(n_nodes, parts))
        case Minus(left, right):
            return 1 + n_nodes(left) + n_nodes(right)
        case Repeat(body, _, _):
            return 1 + n_nodes(body)
    return 1


def _is_restricted(tree: Regular) -> bool:
    """Whether an intersection or a difference may leave a tree without words."""
    match tree:
        case And() | Minus():
            return True
        case Cat(parts):
            return any(map(_is_restricted, parts))
        case Alt(parts):
            return all(map(_is_restricted, parts))
        case Repeat(body, low, _):
            return low > 0 and _is_restricted(body)
    return tree == NOTHING
