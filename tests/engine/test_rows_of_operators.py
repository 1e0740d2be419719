"""Tokens that are rows of operators, under longest match: a shift often comes back to the stacks that it began on.

Whether it does is read off the LR tables (ext/parser/top_sets.hpp), so here are grammars where it does, where it
depends on what lies below, and where it does at some tops only; each is compared with tails that are parsed on the real
stack.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wfsa
from tests.engine.modes import MODES
from tests.engine.strategies import choice, walks

pytestmark = pytest.mark.engine

GRAMMARS = {
    "prefix": 'start: e\ne: "-" e | "*" e | N\nN: /[0-9]/',
    "prefix and binary": 'start: e\ne: e "-" e | e "*" e | ("-" | "*" | "!") e | "(" e ")" | N\nN: /[0-9]/',
    "prefix of statements": 'start: (e ";")+\ne: p | e ("-" | "*") e\np: "-" p | "(" e ")" | N\nN: /[0-9]/',
    "one list, two ends": 'start: "(" l ")" | "!" l ";"\nl: l "-" | l "*" | "-"',
    "ends by what is below": 'start: "(" a ")" | "!" b ";"\na: a "-" | "-"\nb: b "-" | b "*" | "-"',
    "two lists at once": 'start: (a | b)\na: a "-" | a "*" | "-"\nb: b "-" ";" | "-" ";" | "-" b ")"',
    "a member or an end": 'start: "!"? (l | l "-" ";" | l "*" "-" ")")\nl: l "-" | l "*" | "-"',
    "to the right": 'start: s\ns: "-" s | "-" s "*" | N\nN: /[0-9]/',
    "through two": 'start: s\ns: "-" u | N\nu: "*" s | "*" s "-" | "-" ";"\nN: /[0-9]/',
    "nested": 'start: s\ns: "-" s "*" | s s | N\nN: /[0-9]/',
    "longer operators": 'start: e\ne: e ("-" | "--" | "-*") e | "-" e | "--" e | e "--" | N\nN: /[0-9]/\n%ignore " "',
    "in pairs": 'start: ("-" "*")* ";" | ("-" "*")+ "!"',
}
ROWS = [bytes(row) for n in (2, 3, 4) for row in itertools.product(b"-*", repeat=n)]
TOKENS = [
    *(bytes([b]) for b in b"-*!();0 "), *ROWS, b"-" * 9, b"*" * 9, b"-*" * 6, b"- - -", b"--0", b"-*;", b"-)", b"0-",
    b"0)-", b"--0--", b"--;", b"---;", b"*-)", b"-*-)",
]


@pytest.mark.parametrize("name", GRAMMARS)
@given(walks, st.sampled_from(MODES))
def test_rows(name: str, walk: list[int], mode: str) -> None:
    eos = len(TOKENS)
    fast, slow = (
        wfsa.compile_lark(GRAMMARS[name], wfsa.Vocab([*TOKENS, b"<eos>"], special_ids=[eos], eos_ids=[eos]), mode=m)
        for m in (mode, "lazy")
    )
    slow._core.parse_tails(True)
    one, two = fast.start(), slow.start()
    for n in walk:
        allowed = one.get_mask().ids().tolist()
        assert allowed == two.get_mask().ids().tolist()
        token_id = choice(allowed, n)
        if token_id is None:
            break
        assert one.commit(token_id) and two.commit(token_id)
    assert one.get_mask() == two.get_mask()
