"""Derivatives by code point of trees of characters (Brzozowski 1964)."""

from __future__ import annotations

from ..regular import (
    EPSILON,
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
