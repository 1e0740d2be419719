"""Questions about the languages of regular trees: membership, emptiness, inclusion, the number of words, the words.

The engine answers them with automata (:class:`wfsa._ext.regular.Automaton`).  `wfsa` injects it with `use`, because the
front ends know trees and nothing of automata.  Answers are exact, except for trees whose automata pass `MAX_STATES`:
there an answer is what is safe without knowledge, as the docstrings say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol

from wfsa.errors import LimitError

from .regex.derivative import step
from .regex.restrict import nullable
from .regular import Regular, both, minus

MAX_STATES = 1 << 12
ENDLESS = 1 << 62


class Language(Protocol):
    """A regular language of byte strings."""

    @property
    def is_empty(self) -> bool:
        """Whether the language has no word."""

    def contains(self, word: bytes, /) -> bool:
        """Whether a byte string is a word of the language."""

    def n_words(self) -> int | None:
        """The number of words, at most `ENDLESS`; None if the language is infinite."""

    def words(self, most: int, /) -> list[bytes] | None:
        """All words in order, or None if there are more than `most`."""


class Count(NamedTuple):
    """Bounds on a number of values."""

    least: int
    most: int


UNKNOWN = Count(0, ENDLESS)


def _no_engine(tree: Regular, max_states: int) -> Language:
    raise RuntimeError("no engine answers questions about languages; import wfsa before its front ends")


_make: Callable[[Regular, int], Language] = _no_engine


def use(make: Callable[[Regular, int], Language]) -> None:
    """Let `make` build languages from (tree, most states of an automaton); it raises LimitError beyond them."""
    global _make
    _make = make


def contains(tree: Regular, text: str) -> bool:
    """Whether `tree`, a language of texts, contains `text`; UnicodeEncodeError for a lone surrogate."""
    word = text.encode()
    try:
        return _make(tree, MAX_STATES).contains(word)
    except LimitError:
        for c in text:
            tree = step(tree, ord(c))
        return nullable(tree)


@lru_cache(maxsize=4096)
def is_empty(tree: Regular) -> bool:
    """Whether `tree` has no word; False where its automaton is too large."""
    try:
        return _make(tree, MAX_STATES).is_empty
    except LimitError:
        return False


def is_within(left: Regular, right: Regular) -> bool:
    """Whether each word of `left` is one of `right`; False where the automata are too large."""
    return is_empty(minus(left, right))


def are_disjoint(left: Regular, right: Regular) -> bool:
    """Whether `left` and `right` have no word in common; False where the automata are too large."""
    return is_empty(both(left, right))


@lru_cache(maxsize=1024)
def n_words(tree: Regular) -> Count:
    """Bounds on the number of words of `tree`: equal ones, unless its automaton is too large."""
    try:
        n = _make(tree, MAX_STATES).n_words()
    except LimitError:
        return UNKNOWN
    return Count(ENDLESS, ENDLESS) if n is None else Count(n, n)


@lru_cache(maxsize=1024)
def words(tree: Regular, most: int) -> tuple[bytes, ...] | None:
    """The words of `tree` in order, or None if they are more than `most` or its automaton is too large."""
    try:
        found = _make(tree, MAX_STATES).words(most)
    except LimitError:
        return None
    return None if found is None else tuple(found)
