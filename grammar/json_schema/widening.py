"""Conditions that ``SchemaOptions(lenient=True)`` drops, and the list of those that were dropped.

Problem.  Some conditions cannot be enforced: a pattern that is not regular, or alternatives that multiply past a limit.
Without ``lenient`` each is an error.  With ``lenient`` the condition is dropped at the smallest place that contains it
(one keyword, else one object or array), and a `Widening` records it for the report.

A set that lost a condition is too large.  Its complement would be too small, and valid documents would be refused in
silence.  So the set is marked (``Shape.loose``), and intersections and unions inherit the mark.  A loose set is never
subtracted: the difference keeps everything, is loose itself, and is also listed.

Invariant: under ``lenient`` a document is refused only if it is invalid, or because of a narrowing that the report
lists.
"""

from __future__ import annotations

from typing import NamedTuple

from wfsa.errors import LimitError, SchemaError


class Unenforceable(SchemaError):
    """A condition that is well formed but cannot be expressed by a grammar here."""


CAUGHT = (LimitError, Unenforceable)


class Widening(NamedTuple):
    """A condition that was dropped."""

    path: str  # location of the schema object
    keyword: str  # "": all conditions of this location on its objects or arrays
    why: str


class Widenings:
    """Conditions that were dropped while one document was read."""

    __slots__ = ("_dropped", "allowed", "too_large")

    def __init__(self, allowed: bool, too_large: frozenset[str] = frozenset()) -> None:
        self.allowed = allowed
        self.too_large = too_large  # paths whose terminals have turned out to be too large
        self._dropped: dict[tuple[str, str], Widening] = {}

    def add(self, path: str, keyword: str, why: Exception | str) -> None:
        """Record a dropped condition; raises `why` if conditions must not be dropped."""
        if not self.allowed:
            raise why if isinstance(why, Exception) else Unenforceable(f"{why} at {path}")
        reason = str(why).partition("; ")[0].partition(" at $")[0]
        self._dropped.setdefault((path, keyword), Widening(path, keyword, reason))

    def __len__(self) -> int:
        return len(self._dropped)

    def listed(self) -> tuple[Widening, ...]:
        return tuple(self._dropped.values())
