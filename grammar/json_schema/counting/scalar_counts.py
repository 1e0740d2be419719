"""How many numbers a shape has: ranges of multiples."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from ...language import ENDLESS, UNKNOWN, Count
from ..domains.shape import Shape
from ..domains.types import FRACTION, INTEGER


def steps_of(s: Shape) -> list[Fraction]:
    """The numbers of which the numbers of a shape are multiples."""
    return [Fraction(m) for m in s.numbers.multiples] + ([] if s.mask & FRACTION else [Fraction(1)])


def common_step(steps: list[Fraction]) -> Fraction:
    """The least common multiple of some steps, of which there is one at least."""
    return Fraction(math.lcm(*(f.numerator for f in steps)), math.gcd(*(f.denominator for f in steps)))


def has_no_fraction(s: Shape) -> bool:
    """Whether the numbers of a shape are to be multiples of a whole number and no whole numbers: there are none."""
    return not s.mask & INTEGER and bool(s.numbers.multiples) and common_step(steps_of(s)).denominator == 1


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
    if s.numbers.low is None or s.numbers.high is None:
        return None
    low, high = Fraction(s.numbers.low), Fraction(s.numbers.high)
    if low > high or (low == high and (s.numbers.low_open or s.numbers.high_open)):
        return Fraction(1), range(0)
    if low == high and low:
        return low, range(1, 2)
    if not steps:
        return (Fraction(1), range(1)) if low == high else None
    common = common_step(steps)
    first, last = math.ceil(low / common), math.floor(high / common)
    first += s.numbers.low_open and first * common == low
    last -= s.numbers.high_open and last * common == high
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
        is_known = not s.numbers.not_multiples and (s.mask & INTEGER or not s.numbers.multiples)
        return Count(ENDLESS, ENDLESS) if is_known else UNKNOWN
    n = min(numbers[1].stop - numbers[1].start, ENDLESS)
    if s.numbers.not_multiples or not s.mask & INTEGER:
        return Count(0, n)
    return Count(n - len(s.numbers.excluded), n)
