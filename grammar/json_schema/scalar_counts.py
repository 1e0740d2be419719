"""How many numbers and texts a shape has: ranges of multiples, and words of regular languages."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from ..regex.derivative import MAX_WORK, add_cuts, is_empty, is_of_characters, n_nodes, step
from ..regex.restrict import nullable
from ..regular import MAX_CODE_POINT, NOTHING, Regular
from .shape import FRACTION, INTEGER, Shape

ENDLESS = 1 << 62
ENOUGH = 1 << 21  # words that are counted of a language


class Count(NamedTuple):
    """Bounds on a number of values."""

    least: int
    most: int


UNKNOWN = Count(0, ENDLESS)


def steps_of(s: Shape) -> list[Fraction]:
    """The numbers of which the numbers of a shape are multiples."""
    return [Fraction(m) for m in s.multiples] + ([] if s.mask & FRACTION else [Fraction(1)])


def common_step(steps: list[Fraction]) -> Fraction:
    """The least common multiple of some steps, of which there is one at least."""
    return Fraction(math.lcm(*(f.numerator for f in steps)), math.gcd(*(f.denominator for f in steps)))


def has_no_fraction(s: Shape) -> bool:
    """Whether the numbers of a shape are to be multiples of a whole number and no whole numbers: there are none."""
    return not s.mask & INTEGER and bool(s.multiples) and common_step(steps_of(s)).denominator == 1


def exact_number(f: Fraction) -> int | Decimal:
    """A fraction of powers of two and five as a number of JSON, with all its digits."""
    if f.denominator == 1:
        return f.numerator
    with localcontext() as context:
        context.prec = len(str(f.numerator)) + 4 * len(str(f.denominator))
        return Decimal(f.numerator) / f.denominator


def numbers_in(s: Shape) -> tuple[Fraction, range] | None:
    """A step and a range: the range's elements times the step are the numbers within the bounds of a shape.

    None if the numbers have no bound, or no step.
    """
    steps = steps_of(s)
    if s.low is None or s.high is None:
        return None
    low, high = Fraction(s.low), Fraction(s.high)
    if low > high or (low == high and (s.low_open or s.high_open)):
        return Fraction(1), range(0)
    if low == high and low:
        return low, range(1, 2)
    if not steps:
        return (Fraction(1), range(1)) if low == high else None
    common = common_step(steps)
    first, last = math.ceil(low / common), math.floor(high / common)
    first += s.low_open and first * common == low
    last -= s.high_open and last * common == high
    return common, range(first, last + 1)


def listed_numbers(s: Shape, most: int) -> list[Any] | None:
    """The numbers within the bounds of a shape, or None if there are more than `most`."""
    if has_no_fraction(s):
        return []
    numbers = numbers_in(s)
    if numbers is None or numbers[1].stop - numbers[1].start > most:
        return None
    scaled = [n * numbers[0] for n in numbers[1]]
    return [exact_number(f) for f in scaled]


def count_numbers(s: Shape) -> Count:
    """Bounds on the count of the numbers of a shape."""
    if has_no_fraction(s):
        return Count(0, 0)
    numbers = numbers_in(s)
    if numbers is None:
        # Numbers without a bound, or with fractions of any length.
        return UNKNOWN if s.not_multiples or (not s.mask & INTEGER and s.multiples) else Count(ENDLESS, ENDLESS)
    n = min(numbers[1].stop - numbers[1].start, ENDLESS)
    if s.not_multiples or not s.mask & INTEGER:
        return Count(0, n)
    return Count(n - len(s.excluded), n)


@lru_cache(maxsize=1024)
def n_words(tree: Regular) -> Count:
    """Bounds on the number of words of a tree of characters.

    Each layer holds the derivatives by all beginnings of one length, with the number of those beginnings.  Each
    beginning has a word of its own.  A layer deeper than there are derivatives has come through one of them twice.
    """
    seen: set[Regular] = set()
    layer: dict[Regular, int] = {} if tree == NOTHING else {tree: 1}
    ended, work, depth = 0, 0, 0
    while layer:
        seen |= layer.keys()
        if not all(map(is_of_characters, layer)):
            return Count(ended, ENDLESS)
        if depth >= len(seen):
            return Count(ENDLESS, ENDLESS)
        following: dict[Regular, int] = {}
        for at, n in layer.items():
            ended += n * nullable(at)
            edges = _edges(at)
            work += (1 + len(edges)) * n_nodes(at)
            for width, after in edges:
                following[after] = following.get(after, 0) + n * width
        least = ended + sum(following.values())
        if following and (work > MAX_WORK or least > ENOUGH):
            return Count(least, ENDLESS)
        layer, depth = following, depth + 1
    return Count(ended, ended)


def _edges(at: Regular) -> list[tuple[int, Regular]]:
    """(number of characters, the derivative by each of them), for derivatives that have words."""
    cuts = {0, 0xD800, 0xE000}
    add_cuts(at, cuts)
    bounds = [*sorted(c for c in cuts if c <= MAX_CODE_POINT), MAX_CODE_POINT + 1]
    found = []
    for low, end in pairwise(bounds):
        after = NOTHING if 0xD800 <= low < 0xE000 else step(at, low)
        if after != NOTHING and not is_empty(after):
            found.append((end - low, after))
    return found
