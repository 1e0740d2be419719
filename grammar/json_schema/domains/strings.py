"""Conditions on strings: a length in characters, patterns and formats, and single texts that are left out.

Some formats are known from two sides only (:mod:`..spelling.formats`): what has them, and what may have them.  Where a
method has the parameter `wide`, that asks for the second.  Who negates the answer asks for the other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

from ...language import ENDLESS, Count, are_disjoint, contains, is_within, n_words, words
from ...regex.restrict import lengths
from ...regular import Regular
from ..spelling.formats import wide_language
from ..spelling.strings import has_format, pattern_language, text_language
from .conditions import NONE_EXCLUDED, joined, least, no_more, united
from .handles import Children, CountOf, FewOf

N_CHARACTERS = 0x110000 - 0x800  # code points but the surrogates, which no text has


class Strings(NamedTuple):
    """The strings that match all of `patterns`, have all of `formats`, and match and have none of the others."""

    min_length: int = 0
    max_length: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    not_patterns: tuple[str, ...] = ()
    not_formats: tuple[str, ...] = ()
    excluded: Mapping[str, str] = NONE_EXCLUDED  # texts that are left out

    def meet(self, other: Strings, children: Children | None = None) -> Strings:
        """Return the strings in both."""
        if other is ANY_STRINGS or self is other:
            return self
        if self is ANY_STRINGS:
            return other
        return Strings(
            max(self.min_length, other.min_length), least(self.max_length, other.max_length),
            joined(self.patterns, other.patterns), joined(self.formats, other.formats),
            joined(self.not_patterns, other.not_patterns), joined(self.not_formats, other.not_formats),
            united(self.excluded, other.excluded),
        )  # fmt: skip

    def complement(self, children: Children | None = None) -> Iterator[Strings]:
        """Yield the strings that fail at one condition, for each condition but `excluded`."""
        if self.min_length:
            yield Strings(max_length=self.min_length - 1)
        if self.max_length is not None:
            yield Strings(min_length=self.max_length + 1)
        for p in self.patterns:
            yield Strings(not_patterns=(p,))
        for p in self.not_patterns:
            yield Strings(patterns=(p,))
        for f in self.formats:
            yield Strings(not_formats=(f,))
        for f in self.not_formats:
            yield Strings(formats=(f,))

    def is_empty(self, children: Children | None = None, depth: int = 0) -> bool:
        """Whether no text is seen to satisfy the conditions."""
        return _no_text(*self[:-1])

    def within(self, other: Strings, children: Children | None = None, depth: int = 0) -> bool:
        """Whether the conditions of `other` are seen to follow from these."""
        if other is ANY_STRINGS or self is other:
            return True
        if self.min_length < other.min_length or not no_more(self.max_length, other.max_length):
            return False
        if not {*other.formats} <= {*self.formats} or not {*other.not_formats} <= {*self.not_formats}:
            return False
        if not other.excluded.keys() <= self.excluded.keys():
            return False
        mine = self.patterns
        return all(p in mine or any(_implies(own, p) for own in mine) for p in other.patterns) and all(
            p in self.not_patterns or any(_excludes(own, p) for own in mine) for p in other.not_patterns
        )

    def accepts(self, text: str, wide: bool = False) -> bool:
        """Whether a text satisfies the conditions."""
        n = len(text)
        if n < self.min_length or (self.max_length is not None and n > self.max_length) or text in self.excluded:
            return False
        if self.has_any_text():
            return True
        try:
            inner, outer = (_may_have, has_format) if wide else (has_format, _may_have)
            return (
                all(matches(p, text) for p in self.patterns)
                and not any(matches(p, text) for p in self.not_patterns)
                and all(inner(f, text) for f in self.formats)
                and not any(outer(f, text) for f in self.not_formats)
            )
        except UnicodeEncodeError:
            return False

    def has_any_text(self) -> bool:
        """Whether nothing but the length counts, and the single texts that are left out."""
        return not (self.patterns or self.formats or self.not_patterns or self.not_formats)

    def conditions(self) -> tuple[Any, ...]:
        """Return all that the spellings depend on, as the arguments of :func:`.spelling.text_language`; hashable."""
        return *self[:-1], tuple(self.excluded)

    def language(self, wide: bool = False) -> Regular | None:
        """Return the texts as a regular language; None if they are seen to be none."""
        return text_language(*self.conditions(), wide)

    def values(self, kinds: int, most: int, few: FewOf, children: Children) -> list[str] | None:
        """Return the strings, also those that are left out one by one, or None if there are more than `most`."""
        tree = text_language(*self[:-1])
        found = () if tree is None else words(tree, most)
        return None if found is None else [word.decode() for word in found]

    def n_values(self, kinds: int, of: CountOf, children: Children) -> Count:
        """Return bounds on the number of values."""
        if self.has_any_text():
            low, high = self.min_length, self.max_length
            some = (N_CHARACTERS**n for n in range(low, min(high, low + 3) + 1)) if high is not None else (ENDLESS,)
            count = Count(n := min(sum(some), ENDLESS), n)
        else:
            tree = text_language(*self[:-1])
            count = Count(0, 0) if tree is None else n_words(tree)
        return Count(max(count.least - len(self.excluded), 0), count.most)

    def most(self, kinds: int, of: CountOf, children: Children) -> int:
        return self.n_values(kinds, of, children).most


ANY_STRINGS = Strings()


@lru_cache(maxsize=1 << 14)
def matches(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern somewhere; UnicodeEncodeError for a lone surrogate."""
    return contains(pattern_language(pattern), text)


def _may_have(name: str, text: str) -> bool:
    """Whether a text is in the language that holds all texts of a format."""
    return contains(wide_language(name), text)


def _no_text(
    low: int, high: int | None, patterns: tuple[str, ...], formats: tuple[str, ...], not_patterns: tuple[str, ...],
    not_formats: tuple[str, ...],
) -> bool:  # fmt: skip
    """Whether no text is seen to be within some conditions: of lengths the bounds, of patterns any two are compared.

    The automaton of all conditions together would see everything.  Where a schema combines dozens of patterns, there
    is one for each combination: such a schema took 130 ms to read instead of 18.
    """
    if high is not None and low > high:
        return True
    if any(f in not_formats for f in formats):
        return True
    if not patterns:
        return False
    for p in patterns:
        least, most = lengths(pattern_language(p))
        if (high is not None and least > high) or (most is not None and most < low):
            return True
    return any(_excludes(p, q) for p, q in combinations(patterns, 2)) or any(
        _implies(p, q) for p in patterns for q in not_patterns
    )


@lru_cache(maxsize=1 << 14)
def _excludes(p: str, q: str) -> bool:
    """Whether no text is seen to match two patterns."""
    return are_disjoint(pattern_language(p), pattern_language(q))


@lru_cache(maxsize=1 << 14)
def _implies(p: str, q: str) -> bool:
    """Whether each text that matches `p` is seen to match `q`."""
    return is_within(pattern_language(p), pattern_language(q))
