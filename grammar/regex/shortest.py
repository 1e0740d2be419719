"""Shortest match: where a matcher that stops at the first match stops.

A matcher that reads a text from the left and stops as soon as what it has read is a word of L, stops at the words of

    S(L)  =  { w in L : no proper prefix of w is in L }  =  L \\ L Σ+

No word of S(L) begins another, so that S(L) has at most one word at any place of a text.  If the empty word is in L,
it is the only one.
"""

from __future__ import annotations

from ..regular import ByteSet, Regular, cat, minus, plus

_BYTES = plus(ByteSet(((0, 255),)))


def shortest(tree: Regular) -> Regular:
    """The words of `tree` none of which begins with another word of it."""
    return minus(tree, cat(tree, _BYTES))
