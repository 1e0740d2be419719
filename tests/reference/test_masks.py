"""The published construction beside the engine and the definition: equal masks, token by token."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given

import wfsa
from tests.engine.modes import begin, build_vocab
from tests.engine.strategies import Case, cases, choice, walks
from tests.oracles.counted import spelled_out

MOST_PLACES = 50_000
reference = pytest.importorskip("wfsa.reference", reason="NO pyroaring: the published construction was not tried")


@given(cases(), walks)
def test_masks_are_those_of_the_engine_and_of_the_definition(case: Case, walk: list[int]) -> None:
    vocab = build_vocab(case.vocab)
    engine = wfsa.compile(case.grammar, vocab).start()
    state: Any = reference.compile(spelled_out(case.grammar), vocab, max_places=MOST_PLACES).start()
    text = begin(case)
    for n in walk:
        allowed = text.mask()
        try:
            mask = set(state.get_mask())
        except wfsa.LimitError:  # a few of the most ambiguous grammars: one in some hundreds
            event("the parser automaton is too large to be built")
            break
        assert mask == allowed == set(engine.get_mask().ids().tolist())
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


def test_an_automaton_that_would_be_too_large_is_refused() -> None:
    """Three rules that are nullable and lead to each other: readings of one token are exponentially many."""
    grammar = wfsa.grammar.gbnf.read_gbnf('root ::= (a | b)* \na ::= b a "x" | "x" | ""\nb ::= a b | "xx" | ""')
    vocab = wfsa.Vocab([b"x", b"xx", b"xxx", b"xxxxxxx", b"</s>"], eos_ids=[4])
    state = reference.compile(grammar, vocab, max_places=1000).start()
    with pytest.raises(wfsa.LimitError, match="more than 1000 places; raise max_places"):
        state.get_mask()
