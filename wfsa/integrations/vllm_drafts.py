"""Drafts of vLLM's speculative decoding: the masks of a step with drafts, filled in one call.

Importing this needs vLLM (:mod:`.vllm`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wfsa._ext.state import State, fill_draft_chain
from wfsa.integrations.token_limit import fill_within
from wfsa.integrations.vllm_backend import WfsaBackend, WfsaGrammar

_PADDING = -1
_ALL = np.int32(-1)  # a word of a mask that allows every token


def grammar_bitmask(
    original: Any, self: Any, requests: Mapping[str, Any], ids: Sequence[str], drafts: Mapping[str, Sequence[int]]
) -> npt.NDArray[np.int32] | None:
    """Fills the masks of a step with drafts; wraps ``StructuredOutputManager.grammar_bitmask``.

    vLLM's own loop makes a fill and a commit for each draft, and a rollback for each request.
    """
    n_most = 1 + self.vllm_config.num_speculative_tokens
    backend = self.backend
    if n_most == 1 or not ids or not isinstance(backend, WfsaBackend) or self.vllm_config.model_config.is_diffusion:
        return original(self, requests, ids, drafts)  # type: ignore[no-any-return]
    if self._grammar_bitmask is None:
        n_requests = self.vllm_config.scheduler_config.max_num_seqs
        self._grammar_bitmask = backend.allocate_token_bitmask(n_requests * n_most)
    chains = [_Chain(self, requests[name], drafts.get(name, ())) for name in ids]
    # vLLM 0.33 reads a block of equal size for each request, and 0.32 reads the rows without gaps.
    is_strided = hasattr(self, "_masked_reasoning_ends")
    stride = n_most if is_strided else max(chain.n_rows for chain in chains)
    rows = backend.rows_of(self._grammar_bitmask)[: len(chains) * stride]
    _fill(backend, chains, rows, stride)
    if is_strided:
        return rows
    end = 0
    for begin, chain in zip(range(0, len(rows), stride), chains, strict=True):
        if end != begin:
            rows[end : end + chain.n_rows] = rows[begin : begin + chain.n_rows]
        end += chain.n_rows
    return rows[:end]


class _Chain:
    """The drafts of one request in a step, and its rows: one before each draft, and one after the last."""

    __slots__ = ("begin", "grammar", "masked", "n_drafts", "n_free", "n_rows", "state", "tokens")

    def __init__(self, manager: Any, request: Any, drafts: Sequence[int]) -> None:
        self.n_rows = len(drafts) + 1
        n = self.n_drafts = next((k for k, token in enumerate(drafts) if token == _PADDING), len(drafts))
        # The first row whose draft is part of the text, and the number of rows that belong to the reasoning.
        self.begin, self.n_free = manager._get_constraint_bounds(request, drafts[:n])
        self.masked: Sequence[int] = ()  # tokens that the rows of the reasoning must not allow
        if self.n_free and hasattr(manager, "_masked_reasoning_ends"):
            self.masked = manager._masked_reasoning_ends(request)
        self.grammar: WfsaGrammar = request.structured_output_request.grammar
        self.tokens = drafts[self.begin : n]
        is_free = self.begin > n or self.grammar.is_terminated()
        self.state: State | None = None if is_free else self.grammar.state

    def finish(self, rows: npt.NDArray[np.int32], n_filled: int) -> None:
        """Moves the masks of the text, which are the first `n_filled` rows, to their rows, and writes all others."""
        refused = False
        if 0 < n_filled <= len(self.tokens):  # the next token is refused, or it has ended the text
            token = self.tokens[n_filled - 1]
            refused = not rows[n_filled - 1, token >> 5] >> (token & 31) & 1
        if self.begin and n_filled:
            rows[self.begin : self.begin + n_filled] = rows[:n_filled].copy()
        n_free = min(self.n_free, self.n_drafts + 1)
        if n_free:
            rows[:n_free] = _ALL
            for token in self.masked:
                rows.view(np.uint32)[:n_free, token >> 5] &= ~np.uint32(1 << (token & 31))
        end = max(n_free, self.begin + n_filled if n_filled else 0)
        rows[end:] = rows[end - 1] if refused else _ALL


def _fill(backend: WfsaBackend, chains: Sequence[_Chain], rows: npt.NDArray[np.int32], stride: int) -> None:
    """Fills the rows of each chain, which begin at a multiple of `stride`."""
    tokens = np.full((len(chains), stride), _PADDING, np.int64)
    for row, chain in zip(tokens, chains, strict=True):
        row[1 : 1 + len(chain.tokens)] = chain.tokens
    states = [chain.state for chain in chains]
    left = [None if chain.state is None else chain.grammar.limit.budget(chain.state) for chain in chains]
    n_filled = np.zeros(len(chains), np.int64)

    def fill(budgets: list[int | None]) -> None:
        settings = backend.settings
        n_filled[:] = fill_draft_chain(
            states, tokens, rows, settings.threads, max_tokens=budgets, wrap_up=settings.wrap_up
        )

    with backend.constraints.timed_masks():
        fill_within(states, left, fill, [chain.grammar.limit for chain in chains])
    for begin, chain, n in zip(range(0, len(rows), stride), chains, n_filled.tolist(), strict=True):
        if n < chain.n_rows:
            chain.finish(rows[begin : begin + chain.n_rows], n)
