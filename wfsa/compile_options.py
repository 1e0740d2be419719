"""How to compile: the options, and the same as keywords of every ``compile*`` function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Final, Literal, TypedDict, get_args

Progress = Callable[[str, float], None]
_COUNTS: Final = ("max_terminal_states", "max_lr_states", "max_lexer_states", "max_memory", "max_grown_bytes")
_MOST: Final = 1 << 62
Mode = Literal["ahead", "lazy", "background"]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How to compile.

    mode: "ahead" expands everything that can be reached; "lazy" expands on first use; "background" returns when "lazy"
        would, and expands everything on a thread of the process, beside those who decode (``Constraint.wait``).
    max_terminal_states, max_lr_states, max_lexer_states: LimitError beyond these. What is linear in the grammar is not
        counted: the states of a set of words (an enum) that ends a terminal, lexer states that stand in one terminal.
    max_seconds: LimitError when compiling takes longer, the front end included; None for no limit.
    max_memory: LimitError when the process's resident memory grows by more bytes while compiling, whichever thread
        takes them; None for no limit. Known on Linux only.
    max_grown_bytes: bytes, about, of what is learnt while texts are decoded (lexer states on first use, sets of
        properties in any order); texts that begin beyond it, or after a limit was met, begin with fresh tables.
    progress: called with (stage, fraction between 0 and 1) at each step, and every 50 ms or so within a long one, with
        the same values again. What it raises ends the compilation.
    """

    mode: Mode = "ahead"
    max_terminal_states: int = 1 << 18
    max_lr_states: int = 1 << 20
    max_lexer_states: int = 1 << 20
    max_seconds: float | None = None
    max_memory: int | None = None
    max_grown_bytes: int = 64 << 20
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode must be 'ahead', 'lazy' or 'background', not {self.mode!r}")
        if not isinstance(self.max_seconds, (int, float, NoneType)):
            raise TypeError(f"max_seconds must be a number or None, not {self.max_seconds!r}")
        for name in _COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) and not (value is None and name == "max_memory"):
                raise TypeError(f"{name} must be a whole number, not {value!r}")
            if value is not None and not -_MOST <= value <= _MOST:
                raise ValueError(f"{name} must be at most 2**62, got {value}")


class CompileKeywords(TypedDict, total=False):
    """The fields of :class:`CompileOptions` as keywords, for type checkers."""

    mode: Mode
    max_terminal_states: int
    max_lr_states: int
    max_lexer_states: int
    max_seconds: float | None
    max_memory: int | None
    max_grown_bytes: int
    progress: Progress | None

