"""Continuous batching of the transformers library under constraints, one a request.

    manager = model.init_continuous_batching(generation_config, continuous_batching_config=ContinuousBatchingConfig(
        use_async_batching=False, use_cuda_graph=False))
    constrain(manager)
    manager.start()
    manager.add_request(ids, constraint=constraint)

**Problem.** A manager makes its processors itself, of the generation configuration, and shows them one token a row. But
it asks a ``ContinuousBatchingLogitsProcessor`` before each forward pass for a number a row, with the requests at hand.

**Method.** That is where each request's state takes the tokens that are new, and masks are filled; the number is the
row of the mask, -1 for a request without a constraint. The masks themselves wait in this process until the scores are
there. States are kept by the request's name, those of the last 4,096; one that was dropped is committed anew.

**Limits.** So the call has to be this process's own Python (no CUDA graphs, nothing compiled), and each token has to
be known before the next step is prepared (no asynchronous batching). :func:`constrain` refuses managers that are set
up otherwise. The interface is experimental, and this one is for the version that :data:`HOST` names.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from wfsa._ext.state import State, fill_bitmasks
from wfsa.bitmask import allocate_bitmask
from wfsa.constraint import Constraint
from wfsa.errors import DecodingError, StateError
from wfsa.installing import needs
from wfsa.integrations.transformers import HOST, ends_of, mask_rows, only, too_narrow

with needs("wfsa.integrations.continuous_batching", extra="transformers"):
    import torch

try:
    from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor
except ImportError as error:
    raise DecodingError(
        f"{HOST} has no processors for continuous batching where 5.23 has them ({error}): use generate, or that version"
    ) from error

_KEPT = 4096  # states


class ConstraintBatchingProcessor(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]
    """Masks for requests that were added with ``constraint=``; others are left alone."""

    supported_kwargs: ClassVar[dict[str, type]] = {"constraint": Constraint}
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._states: OrderedDict[str, State] = OrderedDict()  # by the request's name
        self._masks = allocate_bitmask(0, 1)
        self._size = 1  # the widest vocabulary of this step

    def fill_defaults(self, int32_tensor: Any) -> None:
        """-1: a row without a constraint."""
        int32_tensor.fill_(-1)

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> Any:
        """int32[n]: the row of the mask for each request, -1 for none."""
        states: list[State] = []
        numbers = []
        for request in requests_with_new_token:
            constraint = request.state.logit_processor_kwargs.get("constraint")
            number = -1
            if constraint is not None:
                number = len(states)
                states.append(self._state(constraint, request.state))
            numbers.append(number)
        self._fill(states)
        return torch.tensor(numbers, dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: Any) -> Any:
        """Scores float[n, V], masked, in a copy."""
        numbers = tensor_arg[: len(scores)].tolist()
        rows = [row for row, number in enumerate(numbers) if 0 <= number < len(self._masks)]
        if not rows:
            return scores
        if scores.shape[-1] < self._size:
            raise StateError(too_narrow(scores.shape[-1], self._size))
        masks = np.full((len(scores), self._masks.shape[1]), -1, np.int32)
        masks[rows] = self._masks[[numbers[row] for row in rows]]
        masked = scores.clone(memory_format=torch.contiguous_format)
        mask_rows(masked, masks, rows)
        return masked

    def _state(self, constraint: Constraint, request: Any) -> State:
        # A request that was put off has what it wrote among its first tokens.
        begun = request._true_initial_tokens or len(request.initial_tokens)
        tokens = [*request.initial_tokens[begun:], *request.generated_tokens]
        state = self._states.get(request.request_id)
        if state is None or state.constraint is not constraint or state.n_commits > len(tokens):
            state = self._states[request.request_id] = constraint.start()
        self._states.move_to_end(request.request_id)
        while len(self._states) > _KEPT:
            self._states.popitem(last=False)
        state.commit_tokens(tokens[state.n_commits :])
        if state.n_commits < len(tokens) and not state.is_finished():
            raise StateError(
                f"{HOST}: request {request.request_id} has a token that its constraint does not allow (the last ones "
                f"are {tokens[-8:]}); another processor forces tokens, or batching is asynchronous"
            )
        return state

    def _fill(self, states: list[State]) -> None:
        self._size = max((state.constraint.vocab.size for state in states), default=1)
        self._masks = allocate_bitmask(len(states), self._size)
        going = {row: state for row, state in enumerate(states) if not state.is_finished()}
        fill_bitmasks(list(going.values()), self._masks, threads=self.threads, rows=list(going))
        for row in range(len(states)):
            if row not in going:
                only(self._masks[row], ends_of(states[row]))


def constrain(manager: Any, threads: int = 1) -> ConstraintBatchingProcessor:
    """Put the processor into a manager that has not been started; ``add_request(..., constraint=...)`` then works.

    Raises DecodingError where the manager runs, batches asynchronously, or uses CUDA graphs or compiled steps.
    """
    config = manager.continuous_batching_config
    asked = {
        "use_async_batching": config.use_async_batching,
        "use_cuda_graph": config.use_cuda_graph,
        "default_compile_level": config.default_compile_level,
        "varlen_compile_config": config.varlen_compile_config,
        "decode_compile_config": config.decode_compile_config,
    }
    wrong = [name for name, value in asked.items() if (any(value) if isinstance(value, tuple) else value)]
    if wrong:
        raise DecodingError(
            f"{HOST}: masks are computed on the host between the steps, which {', '.join(wrong)} rules out; pass "
            "ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False) without compiling"
        )
    if manager._generation_thread is not None:
        raise DecodingError(f"{HOST}: the manager has been started; call constrain(manager) before manager.start()")
    masks = ConstraintBatchingProcessor(threads)
    processors = manager.logit_processor
    processors.logits_processor.insert(0, masks)
    processors.tensors_required += 1
    processors.do_processing = True
    processors.supported_keys.update(masks.supported_kwargs)
    return masks
