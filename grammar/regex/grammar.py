"""Reads a regular expression as a whole grammar: ``start -> terminal`` under the policy "cfg".

A pattern whose automaton would be far larger than a terminal should be (``(ab){2,50000}c``) is split into rules along
its concatenations and repetitions.  The language is the same, and the parser counts in powers of four. Ordinary
patterns are one terminal, whatever their structure: then the lexer alone decides.
"""

from __future__ import annotations

from wfsa.errors import GrammarError

from ..boundary import Boundary
from ..fold import fold_rules
from ..ir import Grammar
from .pattern import Dialect, parse_regex


@Boundary(GrammarError)
def read_regex(pattern: str, *, dialect: Dialect = "python", flags: str = "") -> Grammar:
    """Return the grammar of the texts that `pattern` matches from end to end."""
    if not isinstance(pattern, str):
        raise GrammarError(f"a pattern must be a str, not {type(pattern).__name__}")
    tree = parse_regex(pattern, dialect=dialect, flags=flags)
    return fold_rules({"start": tree}, "start", origins={"start": "the pattern"})
