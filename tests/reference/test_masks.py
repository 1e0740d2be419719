"""The published construction beside the engine and the definition: equal masks, token by token."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import wfsa
from tests.engine.modes import begin, build_vocab
from tests.engine.strategies import Case, cases, choice, walks
from tests.oracles.counted import spelled_out

reference = pytest.importorskip("wfsa.reference", reason="NO pyroaring: the published construction was not tried")


@given(cases(), walks)
def test_masks_are_those_of_the_engine_and_of_the_definition(case: Case, walk: list[int]) -> None:
    vocab = build_vocab(case.vocab)
    engine = wfsa.compile(case.grammar, vocab).start()
    state: Any = reference.compile(spelled_out(case.grammar), vocab).start()
    text = begin(case)
    for n in walk:
        allowed = text.mask()
        assert set(state.get_mask()) == allowed == set(engine.get_mask().ids().tolist())
        for token in set(range(vocab.n_tokens)) - allowed:
            assert state.commit(token) is None
        token = choice(allowed, n)
        if token is None:
            break
        state = state.commit(token)
        assert state is not None
        assert engine.commit(token)
        after = text.commit(token)
        assert after is not None
        text = after
        assert state.finished == text.finished
        if text.finished:
            break
