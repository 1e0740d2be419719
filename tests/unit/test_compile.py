"""What the compiler's driver refuses, reports and limits."""

from __future__ import annotations

import pytest

import wfsa
from wfsa.grammar.ir import GrammarBuilder, Tokens
from wfsa.grammar.regular import literal, repeat

VOCAB = wfsa.Vocab([b"a", b"b", b"ab", b"</s>"], special_ids=[3], eos_ids=[3])


def test_an_ignored_token_level_terminal_is_refused() -> None:
    g = GrammarBuilder("longest")
    a, token, start = g.terminal(literal("a")), g.terminal(Tokens((1,)), "tool"), g.nonterminal("start")
    g.rule(start, [a])
    with pytest.raises(wfsa.GrammarError, match="'tool' cannot be ignored"):
        wfsa.compile(g.build(start, [token]), VOCAB)


def test_a_grammar_that_derives_nothing() -> None:
    g = GrammarBuilder()
    start = g.nonterminal("loop")
    g.rule(start, [g.terminal(literal("a")), start])
    with pytest.raises(wfsa.GrammarError, match="'loop' has no finite word"):
        wfsa.compile(g.build(start), VOCAB)


def test_limits_name_the_place_and_the_option() -> None:
    g = GrammarBuilder()
    start = g.nonterminal("start")
    g.rule(start, [g.terminal(repeat(literal("ab"), 0, 5000), "pairs", origin="line 3")])
    grammar = g.build(start)
    with pytest.raises(wfsa.LimitError, match=r"'pairs' at line 3.*max_terminal_states"):
        wfsa.compile(grammar, VOCAB, max_terminal_states=100)
    with pytest.raises(wfsa.LimitError, match="'pairs' at line 3"):
        wfsa.compile(grammar, VOCAB, max_lr_states=1)


def test_progress_and_stats() -> None:
    seen: list[tuple[str, float]] = []
    constraint = wfsa.compile_regex("a+b", VOCAB, progress=lambda stage, fraction: seen.append((stage, fraction)))
    assert [stage for stage, _ in seen][-1] == "done" and all(0 <= f <= 1 for _, f in seen)
    assert constraint.stats["complete"] and constraint.stats["lr_states"] > 0


def test_expected_survives_saving(tmp_path: object) -> None:
    path = f"{tmp_path}/x.wfsa"
    constraint = wfsa.compile_regex("a+b", VOCAB)
    constraint.save(path)
    for c in (constraint, wfsa.load(path, VOCAB)):
        state = c.start()
        assert "expected nothing" not in state.explain(1)
        assert state.expected_terminals() == [0]
