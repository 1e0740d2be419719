"""Questions that front ends ask the engine, which `wfsa` injects with `use`: the front ends know no automata.

The engine answers questions about the languages of regular trees with automata (:class:`wfsa._ext.regular.Automaton`):
membership, emptiness, inclusion, the number of words, the words.  Answers are exact, except for trees whose automata
pass `MAX_STATES`: there an answer is what is safe without knowledge, as the docstrings say.  The question which
nonterminals of a grammar derive a text is answered by the engine's normaliser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from wfsa.errors import LimitError

from .ir import Unordered
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
Rules = Sequence[tuple[int, tuple[int, ...]]]  # as in a Grammar


def _no_engine(*_: object) -> Any:
    raise RuntimeError("no engine answers the questions of the front ends; import wfsa before them")


_make: Callable[[Regular, int], Language] = _no_engine
_deriving: Callable[[Rules, int, Sequence[Unordered]], bytes] = _no_engine


def use(
    make: Callable[[Regular, int], Language], deriving: Callable[[Rules, int, Sequence[Unordered]], bytes]
) -> None:
    """Install the engine.

    `make` builds languages from (tree, most states of an automaton) and raises LimitError beyond them; `deriving`
    answers the question below.
    """
    global _make, _deriving
    _make, _deriving = make, deriving


def deriving(rules: Rules, n_nonterminals: int, lists: Sequence[Unordered] = ()) -> bytes:
    """By nonterminal 1 if it derives a text where every terminal matches one, else 0.

    `rules` and `lists` are those of a Grammar (`rules`, `unordered`).
    """
    return _deriving(rules, n_nonterminals, lists)


def _language(tree: Regular) -> Language | None:
    """The language of a tree, or None if its automaton is too large."""
    try:
        return _make(tree, MAX_STATES)
    except LimitError:
        return None


_kept_language = lru_cache(maxsize=64)(_language)  # the same tree is asked about several texts


def contains(tree: Regular, text: str) -> bool:
    """Whether `tree`, a language of texts, contains `text`; UnicodeEncodeError for a lone surrogate."""
    word = text.encode()
    language = _kept_language(tree)
    if language is not None:
        return language.contains(word)
    for c in text:
        tree = step(tree, ord(c))
    return nullable(tree)


@lru_cache(maxsize=4096)
def is_empty(tree: Regular) -> bool:
    """Whether `tree` has no word; False where its automaton is too large."""
    language = _language(tree)
    return language is not None and language.is_empty


def is_within(left: Regular, right: Regular) -> bool:
    """Whether each word of `left` is one of `right`; False where the automata are too large."""
    return is_empty(minus(left, right))


def are_disjoint(left: Regular, right: Regular) -> bool:
    """Whether `left` and `right` have no word in common; False where the automata are too large."""
    return is_empty(both(left, right))


@lru_cache(maxsize=1024)
def n_words(tree: Regular) -> Count:
    """Bounds on the number of words of `tree`: equal ones, unless its automaton is too large."""
    language = _language(tree)
    if language is None:
        return UNKNOWN
    n = language.n_words()
    return Count(ENDLESS, ENDLESS) if n is None else Count(n, n)


@lru_cache(maxsize=1024)
def words(tree: Regular, most: int) -> tuple[bytes, ...] | None:
    """The words of `tree` in order, or None if they are more than `most` or its automaton is too large."""
    language = _language(tree)
    found = None if language is None else language.words(most)
    return None if found is None else tuple(found)
