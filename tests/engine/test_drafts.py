"""Drafts can always be committed, spell the forced bytes, and follow the layout of the text."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wfsa
from tests.conftest import VocabFile
from tests.engine.test_draft_trees import begin
from tests.engine.test_threads import GRAMMARS, fresh_vocab
from wfsa._ext.state import fill_drafts
from wfsa.errors import StateError

pytestmark = pytest.mark.engine

ORDER = {
    "type": "object",
    "properties": {"orderId": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["orderId", "n"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def constraints() -> list[wfsa.Constraint]:
    vocab = fresh_vocab()
    made = [compile(vocab, mode) for compile in GRAMMARS.values() for mode in ("ahead", "lazy")]
    schema = {"type": "array", "items": {"enum": [1, 2, "a"]}, "uniqueItems": True}
    return [
        *made,
        wfsa.compile_json_schema(schema, vocab),
        wfsa.compile_json_schema(ORDER, vocab),
        wfsa.compile_texts(["ab", "abc", '{"name"', "if a then"], vocab),
    ]


@pytest.fixture(scope="module")
def llama3(vocab_npz: Callable[[str], VocabFile]) -> wfsa.Vocab:
    return vocab_npz("llama3").build()


def drafted(vocab: wfsa.Vocab, text: bytes, limit: int = 8) -> list[bytes]:
    state = wfsa.compile_json_schema(ORDER, vocab).start()
    if text:
        assert state.commit_bytes(text)
    draft = state.draft(limit)
    assert state.validate(draft) == len(draft) <= limit
    return [vocab.tokens[token] for token in draft]


@pytest.mark.parametrize(
    "text, expected",
    [
        (b"", [b'{"', b"orderId", b'":', b' "']),
        (b'{"orderId": "abc', []),
        (b'{"orderId": "abc"', [b",", b' "', b"n", b'":']),
        (b'{"orderId": "abc", "n": 5}', [b"<|end_of_text|>"]),
        (b'{\n    "orderId": "abc"', [b",\n", b"   ", b' "', b"n", b'":']),
        (b'{\n    "orderId": "abc",\n    "n": 5\n', [b"}", b"<|end_of_text|>"]),
        (b'{"orderId":"abc"', [b',"', b"n", b'":']),
        (b'{ "orderId" : "abc" ', [b",", b' "', b"n", b'"', b" :"]),
    ],
)
def test_drafts_follow_the_layout_of_the_text(llama3: wfsa.Vocab, text: bytes, expected: list[bytes]) -> None:
    assert drafted(llama3, text)[: len(expected)] == expected
    assert len(drafted(llama3, text, 2)) == min(2, len(expected))


def test_a_request_ends_with_its_own_end_token(llama3: wfsa.Vocab) -> None:
    state = wfsa.compile_json_schema({"const": 1}, llama3).start(stop_token_ids=[128009, 128001])
    assert state.commit_bytes(b"1")
    assert state.draft(4) == [128001]
    assert state.draft(4, end_token_id=128009) == [128009]
    assert state.draft(4, end_token_id=-1) == []


def test_a_draft_goes_on_with_the_proposal_where_it_agrees(llama3: wfsa.Vocab) -> None:
    state = wfsa.compile_json_schema(ORDER, llama3).start()
    forced = state.draft(8)
    words = [llama3.tokens.index(word) for word in (b"ab", b"cd", b'",')]
    assert state.draft(8, proposal=[*forced, *words])[: len(forced) + 3] == [*forced, *words]
    assert state.draft(8, proposal=[forced[0], *words]) == forced
    assert state.draft(len(forced) + 1, proposal=np.array([*forced, *words], np.int32)) == [*forced, words[0]]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_drafts_can_be_committed(constraints: list[wfsa.Constraint], seed: int) -> None:
    """After commits, rollbacks, forks and earlier drafts, every draft is valid, and forks draft the same."""
    choose = random.Random(seed)
    try:
        state = begin(constraints, choose)
    except StateError:  # every text needs the stop tokens
        return
    n_tokens = state.constraint.vocab.n_tokens
    for _ in range(6):
        prompt = [choose.randrange(n_tokens) for _ in range(choose.randrange(20))]
        proposal = [choose.randrange(-2, n_tokens + 2) for _ in range(choose.randrange(5))]
        limit, fork, shown = choose.randrange(0, 12), state.fork(), state.output_bytes()
        draft = state.draft(limit, prompt=prompt, proposal=proposal)
        assert len(draft) <= limit
        assert state.validate(draft) == len(draft)
        assert state.output_bytes() == shown
        assert fork.draft(limit, prompt=prompt, proposal=proposal) == draft
        state.commit_tokens(draft[: choose.randrange(len(draft) + 1)])
        if state.is_finished():
            assert state.draft(limit) == []
        else:
            ids = state.get_mask().ids()
            state.commit(int(choose.choice(ids)))
        state.rollback(choose.choice([0, 0, min(state.n_commits, choose.randrange(4))]))


def test_a_batch_of_drafts_is_the_drafts_of_its_states(constraints: list[wfsa.Constraint]) -> None:
    choose = random.Random(5)
    states = [begin(constraints, choose) for _ in range(70)]
    limits = [choose.randrange(9) for _ in states]
    alone = [state.fork().draft(limit) for state, limit in zip(states, limits, strict=True)]
    assert fill_drafts(states, limits, threads=4) == alone
    assert fill_drafts([None, states[0].fork()], [3, limits[0]]) == [[], alone[0]]


def test_bad_requests_for_drafts_are_refused(constraints: list[wfsa.Constraint]) -> None:
    state = constraints[0].start()
    with pytest.raises(StateError, match="one entry for each of 1 states"):
        fill_drafts([state], [1, 2])
    with pytest.raises(StateError, match="occurs twice"):
        fill_drafts([state, state], [1, 2])
    with pytest.raises(StateError, match="threads must be at least 1"):
        fill_drafts([state], [1], threads=0)
    with pytest.raises(TypeError, match="not a state"):
        fill_drafts([3], [1])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        state.draft(3, prompt=["a"])  # type: ignore[list-item]
