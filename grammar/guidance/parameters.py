"""Parameters of rules: a number of 64 bits, steps that change it, and conditions on it.

    rule::_ : "a" rule::set_bit(0)  %if bit_clear(0)

`Step` is what stands behind ``::`` where a rule is used, `Condition` what stands behind ``%if``.  Both speak of bit
ranges ``[x:y]`` (y not included; ``_`` is all 64) of the parameter of the rule that they stand in.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

N_BITS: Final = 64
_ALL: Final = (1 << N_BITS) - 1


@dataclass(frozen=True, slots=True)
class Bits:
    low: int = 0
    high: int = N_BITS

    def of(self, p: int) -> int:
        """The number in these bits of p."""
        return p >> self.low & self.ones

    @property
    def ones(self) -> int:
        return (1 << self.high - self.low) - 1


@dataclass(frozen=True, slots=True)
class Step:
    """The parameter of a rule that is used.  `kind`: "constant", "self", "incr", "decr", "bit_and", "bit_or"."""

    kind: str
    value: int = 0
    bits: Bits = Bits()

    @property
    def needs_parameter(self) -> bool:
        return self.kind != "constant"

    def apply(self, p: int) -> int:
        """The new parameter, where the rule at hand has p.  Counting stops at the ends of its bits."""
        match self.kind:
            case "constant":
                return self.value
            case "incr":
                return p if self.bits.of(p) == self.bits.ones else p + (1 << self.bits.low)
            case "decr":
                return p if self.bits.of(p) == 0 else p - (1 << self.bits.low)
            case "bit_and":
                return p & self.value
            case "bit_or":
                return p | self.value
        return p


COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """`kind`: "true", "and", "or", "not", one of `COMPARISONS`, or "bit_count_" and one of them."""

    kind: str = "true"
    bits: Bits = Bits()
    value: int = 0
    parts: tuple[Condition, ...] = ()

    def holds(self, p: int) -> bool:
        match self.kind:
            case "true":
                return True
            case "and":
                return all(part.holds(p) for part in self.parts)
            case "or":
                return any(part.holds(p) for part in self.parts)
            case "not":
                return not self.parts[0].holds(p)
        number = self.bits.of(p)
        if self.kind.startswith("bit_count_"):
            return COMPARISONS[self.kind.removeprefix("bit_count_")](number.bit_count(), self.value)
        return COMPARISONS[self.kind](number, self.value)


ALWAYS: Final = Condition()


def set_bit(k: int) -> Step:
    return Step("bit_or", 1 << k)


def clear_bit(k: int) -> Step:
    return Step("bit_and", _ALL & ~(1 << k))
