"""Loops whose bodies hold assertions that reach beyond one turn: refused for now."""

from __future__ import annotations

from wfsa.errors import GrammarError
from wfsa.grammar.regex_assertions import Loop
from wfsa.grammar.regular import Regular


def loop_before(loop: Loop, tail: Regular) -> Regular:
    """The texts that go round `loop` any number of times and then are in `tail`."""
    raise GrammarError(
        f"a repetition at offset {loop.at} of the pattern has an assertion that looks beyond one turn of it; "
        "write the alternatives out"
    )
