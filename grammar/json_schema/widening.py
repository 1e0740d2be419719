"""What ``SchemaOptions(lenient=True)`` may give up, and the list of what it gave up.

Problem.  Some conditions cannot be enforced: a pattern that is no regular language, alternatives that multiply past a
limit.  Without ``lenient`` each is an error.  With it the condition is dropped at the
smallest place that holds it (one keyword, else one object or array), and a `Widening` says so; the report shows it.

A set that lost a condition is too large, and its complement would be too small: valid documents would be refused in
silence.  So what is too large is marked (``Shape.loose``), intersections and unions inherit the mark, and what is
loose is never subtracted: the difference keeps all, is loose itself, and is listed too.

Invariant: with ``lenient`` a document is refused only if it is invalid, or for a narrowing that the report lists.
"""

from __future__ import annotations

from typing import NamedTuple

from wfsa.errors import LimitError, SchemaError


class Unenforceable(SchemaError):
    """A condition that is well formed and that no grammar made here can hold."""


CAUGHT = (LimitError, Unenforceable)


class Widening(NamedTuple):
    """One condition that was dropped."""

    path: str  # of the schema object
    keyword: str  # "" for all conditions of this place on its objects or arrays
    why: str


class Widenings:
    """All that was dropped while one document was read."""

    __slots__ = ("_found", "allowed", "too_large")

    def __init__(self, allowed: bool, too_large: frozenset[str] = frozenset()) -> None:
        self.allowed = allowed
        self.too_large = too_large  # paths whose terminals have turned out to be too large
        self._found: dict[tuple[str, str], Widening] = {}

    def add(self, path: str, keyword: str, why: Exception | str) -> None:
        """Note a dropped condition; raises `why` if none may be dropped."""
        if not self.allowed:
            raise why if isinstance(why, Exception) else Unenforceable(f"{why} at {path}")
        reason = str(why).partition("; ")[0].partition(" at $")[0]
        self._found.setdefault((path, keyword), Widening(path, keyword, reason))

    def __len__(self) -> int:
        return len(self._found)

    def listed(self) -> tuple[Widening, ...]:
        return tuple(self._found.values())
