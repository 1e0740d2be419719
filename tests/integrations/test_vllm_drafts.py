"""Drafts in vLLM: the masks of a step with drafts are those of vLLM's own loop."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="NO vllm: `make integrations` has it")

N_DRAFTS, N_REQUESTS = 4, 6
KINDS = [
    ("JSON", json.dumps({
        "type": "object", "properties": {"name": {"type": "string", "maxLength": 4}, "ok": {"type": "boolean"}},
        "required": ["name", "ok"], "additionalProperties": False,
    })),
    ("CHOICE", json.dumps(["yes", "no", "perhaps"])),
    ("REGEX", "(ab|c){2,9}"),
]  # fmt: skip


def manager(settings: dict[str, Any]) -> Any:
    """Return vLLM's manager of structured outputs with wfsa's backend, without an engine around it."""
    import torch
    from vllm.v1.structured_output import StructuredOutputManager

    from tests.integrations.tiny import WIDTH, tokenizer
    from wfsa.integrations.vllm_backend import WfsaBackend

    config = SimpleNamespace(
        additional_config={"wfsa": settings}, num_speculative_tokens=N_DRAFTS,
        speculative_config=SimpleNamespace(num_speculative_tokens=N_DRAFTS),
        model_config=SimpleNamespace(is_diffusion=False), scheduler_config=SimpleNamespace(max_num_seqs=N_REQUESTS),
    )  # fmt: skip
    made = object.__new__(StructuredOutputManager)
    made.vllm_config, made._grammar_bitmask = config, None
    made._full_mask = torch.tensor(-1, dtype=torch.int32)
    made.fill_bitmask_parallel_threshold = 128
    made.backend = WfsaBackend(config, tokenizer=tokenizer(), vocab_size=WIDTH)
    return made


def a_request(made: Any, choose: random.Random) -> tuple[Any, list[int]]:
    """Return a request somewhere in its text, or in its reasoning, and its drafts.

    Drafts may end the reasoning, and may be refused, padded, or beyond the end of the text.
    """
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    kind, text = choose.choice(KINDS)
    grammar = made.backend.compile_grammar(getattr(StructuredOutputOptions, kind), text)
    reasoning = choose.choice([0, 0, 0, 1, 2, 9])
    for _ in range(0 if reasoning else choose.randrange(12)):
        if grammar.is_terminated():
            break
        grammar.state.commit(choose.choice(grammar.state.get_mask().ids().tolist()))
    if choose.random() < 0.5 and not grammar.is_terminated():
        made.backend.limit(grammar, grammar.state.min_tokens() + choose.randrange(8))
    state, n = grammar.state.fork(), choose.randrange(N_DRAFTS + 1)
    drafts = [choose.randrange(made.backend.vocab.n_tokens) for _ in range(min(n, begin_of(reasoning)))]
    while len(drafts) < n:
        if state.is_finished() or choose.random() < 0.1:
            drafts.append(made.backend.vocab.n_tokens - 2)  # padding of the tokenizer, which no text has
            break
        mask = state.get_mask(grammar.limit.budget(state), made.backend.settings.wrap_up)
        drafts.append(choose.choice(mask.ids().tolist()))
        state.commit(drafts[-1])
    if choose.random() < 0.2:
        drafts += [-1] * (N_DRAFTS - len(drafts))
    return SimpleNamespace(reasoning=reasoning, structured_output_request=SimpleNamespace(grammar=grammar)), drafts


def begin_of(reasoning: int) -> int:
    """Return the first draft of the text; a reasoning of two drafts ends with the first token of the text."""
    return reasoning - (reasoning == 2)


@pytest.mark.parametrize("settings", [{}, {"wrap_up": 3}, {"threads": 2}], ids=["plain", "wrap_up", "threads"])
def test_masks_of_drafts_are_those_of_vllms_loop(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.v1.structured_output import ConstraintBounds, StructuredOutputManager

    from wfsa.integrations import vllm_drafts

    def bounds(request: Any, tokens: list[int]) -> ConstraintBounds:
        none = len(tokens) + 1
        return ConstraintBounds(min(begin_of(request.reasoning), none), min(request.reasoning, none))

    own = StructuredOutputManager.grammar_bitmask
    while hasattr(own, "__wfsa_original__"):
        own = own.__wfsa_original__
    made = manager(settings)
    monkeypatch.setattr(made, "_get_constraint_bounds", bounds)
    monkeypatch.setattr(made.backend, "why", lambda *_: "")  # an explanation of a refused token costs a compilation
    n_rows = 0
    for seed in range(60):
        choose = random.Random(seed)
        pairs = [a_request(made, choose) for _ in range(1 + seed % N_REQUESTS)]
        requests = {str(k): request for k, (request, _) in enumerate(pairs)}
        drafts = {str(k): drafts for k, (_, drafts) in enumerate(pairs)}
        states = [request.structured_output_request.grammar.state for request, _ in pairs]
        expected = own(made, requests, list(requests), drafts).copy()
        made._grammar_bitmask.fill_(0x5A5A5A5A)
        n_commits = [state.n_commits for state in states]
        rows = vllm_drafts.grammar_bitmask(own, made, requests, list(requests), drafts)
        np.testing.assert_array_equal(rows, expected)
        assert n_commits == [state.n_commits for state in states]
        n_rows += len(rows)
    assert n_rows > 400
