"""The backend of vLLM's structured outputs: subclasses of its classes, so importing it needs vLLM (:mod:`.vllm`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

from wfsa._ext.state import State, fill_bitmasks
from wfsa.integrations.serving import Constraints, vocabulary_of
from wfsa.integrations.token_limit import TokenLimit, fill_within
from wfsa.integrations.vllm_requests import KINDS, settings_of

LOG = logging.getLogger("wfsa.vllm")


class WfsaGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """The text of one request. One thread at a time calls it."""

    def __init__(self, backend: WfsaBackend, state: State) -> None:
        self.backend, self.state = backend, state
        self.limit = TokenLimit()
        self.prompt: npt.NDArray[np.int32] | None = None  # tokens of the prompt, set by the first draft
        backend.constraints.count(self)

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        for token in tokens:
            if self.state.is_finished():
                return True  # tokens after the end are ignored
            if not self.backend.is_token(token) or not self.state.commit(token):
                why = self.backend.why(self.state, token)
                LOG.error("request %s: token %d is refused: %s", request_id, token, why)
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        if self.state.is_finished():
            return []
        n_tokens = next((k for k, token in enumerate(tokens) if not self.backend.is_token(token)), len(tokens))
        valid = tokens[: self.state.validate(tokens[:n_tokens])]
        return valid[: self.limit.validate(self.state, valid)]

    def rollback(self, num_tokens: int) -> None:
        self.state.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self.backend.fill(bitmask, [(self, batch_index, True)])

    def is_terminated(self) -> bool:
        return self.state.is_finished()

    def reset(self) -> None:
        self.state.reset()


@dataclass
class WfsaBackend(StructuredOutputBackend):  # type: ignore[misc]
    """Compiles the requests of one engine and fills their masks."""

    def __post_init__(self) -> None:
        self.settings = settings_of(self.vllm_config)
        self.vocab = vocabulary_of(self.tokenizer, self.vocab_size)
        self.constraints = Constraints(self.vocab, self.settings)
        self._rows: tuple[int, npt.NDArray[np.int32]] | None = None

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: Iterable[int] | None = None
    ) -> WfsaGrammar:
        constraint = self.constraints.of(KINDS[request_type.name], grammar_spec)
        stops = sorted(i for i in stop_token_ids or () if self.is_token(i))
        return WfsaGrammar(self, constraint.start(stop_token_ids=stops) if stops else constraint.start())

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        return torch.full((max_num_seqs, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)

    def destroy(self) -> None:
        self._rows = None

    def is_token(self, token: int) -> bool:
        return 0 <= token < self.vocab.n_tokens

    def why(self, state: State, token: int) -> str:
        return state.explain(token) if self.is_token(token) else f"the vocabulary has {self.vocab.n_tokens} tokens"

    def rows_of(self, bitmask: torch.Tensor) -> npt.NDArray[np.int32]:
        """Returns a NumPy view of a bitmask, cached because making the view costs more than a mask."""
        view = self._rows
        if view is None or view[0] != bitmask.data_ptr() or view[1].shape != tuple(bitmask.shape):
            view = self._rows = bitmask.data_ptr(), bitmask.numpy()
        return view[1]

    def limit(self, grammar: Any, left: int) -> None:
        """Sets how many tokens of its request a text has left, including the end token."""
        if isinstance(grammar, WfsaGrammar) and self.settings.within_max_tokens:
            grammar.limit.set(left, grammar.state)

    def fill(self, bitmask: torch.Tensor, batch: Sequence[tuple[Any, ...]]) -> None:
        """Fills the rows of a step in one call.

        batch: tuples of a grammar, its row, whether its mask applies now, and the tokens to mask if not. vLLM 0.33 adds
        the last part: these tokens would end the reasoning, and the text cannot begin with them.
        """
        rows = self.rows_of(bitmask)
        constrained = []
        for grammar, row, applies, *masked in batch:
            if applies and not grammar.is_terminated():
                constrained.append((grammar.state, grammar.limit, row))
            else:
                rows[row] = -1
                for token in masked[0] if masked else ():
                    rows[row].view(np.uint32)[token >> 5] &= ~np.uint32(1 << (token & 31))
        if constrained:
            states, limits, places = zip(*constrained, strict=True)
            threads, wrap_up = self.settings.threads, self.settings.wrap_up
            options: dict[str, Any] = {"rows": places, "threads": threads, "wrap_up": wrap_up}
            left = [limit.budget(state) for limit, state in zip(limits, states, strict=True)]
            with self.constraints.timed_masks():
                fill_within(
                    states, left, lambda budgets: fill_bitmasks(states, rows, max_tokens=budgets, **options), limits
                )
