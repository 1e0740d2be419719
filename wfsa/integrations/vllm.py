"""vLLM: constraints of wfsa as a backend of its structured outputs.

Installed beside vLLM, the package is found by its entry point (``vllm.general_plugins``); `register` then runs in every
process of vLLM.  It is switched on by either of

    vllm serve MODEL --structured-outputs-config.backend wfsa
    WFSA_VLLM=1 vllm serve MODEL                                  with the backend left at "auto"

and offline by ``wfsa.integrations.vllm.register()`` before ``LLM(structured_outputs_config={"backend": "wfsa"})``.

vLLM has no registry of backends, so four things of it are wrapped, by name and checked before:

    StructuredOutputsConfig.backend                  takes the name "wfsa"
    SamplingParams._validate_structured_outputs      the request is read where it comes in: a mistake is a 400
    StructuredOutputManager.grammar_init             makes the backend
    StructuredOutputManager._async_submit_fill_bitmask, fill_bitmask_parallel_*   one call fills the masks of a step

``additional_config={"wfsa": {...}}`` of vLLM holds settings: fields of :class:`wfsa.integrations.serving.Settings`.
Tried with vLLM 0.32.0 (CPU); written for 0.32 and 0.33.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

import wfsa
from wfsa.errors import WfsaError
from wfsa.integrations.serving import Constraints, Settings, vocabulary_of
from wfsa.requests import compile_kind

_LOG = logging.getLogger("wfsa.vllm")
_NAME = "wfsa"
_ON = ("1", "true", "yes", "on")
_KINDS = {
    "JSON": "json", "JSON_OBJECT": "json_object", "REGEX": "regex", "GRAMMAR": "grammar", "CHOICE": "choice",
    "STRUCTURAL_TAG": "structural_tag",
}  # fmt: skip
_WRAPPED = "__wfsa_original__"


@functools.lru_cache(maxsize=8)
def _bytes() -> wfsa.Vocab:
    return wfsa.Vocab([bytes([byte]) for byte in range(256)])


def register() -> None:
    """Make vLLM know the backend; what the entry point runs.  Twice is as once.

    Raises ImportError where this vLLM is not one that is known here, with its version and the remedy.
    """
    import vllm
    from vllm.config import structured_outputs as config
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output import StructuredOutputManager

    wanted: list[tuple[Any, str]] = [
        (config, "StructuredOutputsConfig"), (SamplingParams, "_validate_structured_outputs"),
        (StructuredOutputManager, "grammar_init"), (StructuredOutputManager, "_async_submit_fill_bitmask"),
        (StructuredOutputManager, "_fill_bitmasks"),
    ]  # fmt: skip
    for holder, name in wanted:
        if not hasattr(holder, name):
            where = getattr(holder, "__qualname__", getattr(holder, "__name__", "vllm"))
            raise ImportError(
                f"wfsa does not know this vLLM ({vllm.__version__}): {where}.{name} is not there; it is written for "
                "0.32 and 0.33: install one of them, or leave wfsa out of VLLM_PLUGINS"
            )
    if hasattr(SamplingParams._validate_structured_outputs, _WRAPPED):
        return
    _name_backend(config)
    _wrap(SamplingParams, "_validate_structured_outputs", _validate)
    _wrap(StructuredOutputManager, "grammar_init", _grammar_init)
    _wrap(StructuredOutputManager, "_async_submit_fill_bitmask", _submit)


def settings_of(vllm_config: Any) -> Settings:
    """The settings of an engine."""
    given = getattr(vllm_config, "additional_config", None) or {}
    given = given.get(_NAME, {}) if isinstance(given, dict) else {}
    return Settings.of(given, "additional_config['wfsa']")


def _wrap(holder: Any, name: str, around: Any) -> None:
    original = getattr(holder, name)

    @functools.wraps(original)
    def wrapped(self: Any, *args: Any, **keywords: Any) -> Any:
        return around(original, self, *args, **keywords)

    setattr(wrapped, _WRAPPED, original)
    setattr(holder, name, wrapped)


def _name_backend(config: Any) -> None:
    """Let the configuration take the name "wfsa"."""
    from pydantic.dataclasses import rebuild_dataclass

    names = get_args(config.StructuredOutputsBackend)
    if _NAME in names:
        return
    config.StructuredOutputsBackend = Literal[(*names, _NAME)]
    cls = config.StructuredOutputsConfig
    cls.__annotations__["backend"] = config.StructuredOutputsBackend
    for one in fields(cls):
        if one.name == "backend":
            one.type = config.StructuredOutputsBackend
    rebuild_dataclass(cls, force=True)


def _is_on(structured_outputs_config: Any) -> bool:
    backend = structured_outputs_config.backend
    return backend == _NAME or (backend == "auto" and os.environ.get("WFSA_VLLM", "").lower() in _ON)


def _validate(
    original: Any, self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any, *more: Any,
    **keywords: Any,
) -> None:  # fmt: skip
    """Read a request where it comes in; what is wrong about it is told as vLLM tells it, and a server answers 400."""
    asked = self.structured_outputs
    if asked is None or structured_outputs_config is None or not _is_on(structured_outputs_config):
        original(self, model_config, structured_outputs_config, tokenizer, *more, **keywords)
        return
    from vllm import exceptions
    from vllm.v1.structured_output.request import get_structured_output_key

    refused = getattr(exceptions, "VLLMValidationError", ValueError)
    if tokenizer is None:
        raise refused("structured outputs need a tokenizer, so not skip_tokenizer_init")
    kind, text = get_structured_output_key(asked)
    vocab = vocabulary_of(tokenizer) if kind.name == "STRUCTURAL_TAG" else _bytes()
    try:
        compile_kind(_KINDS[kind.name], text or None, vocab, mode="lazy", max_seconds=Settings().max_seconds)
    except WfsaError as error:
        raise refused(f"wfsa: {error}") from None
    asked._backend, asked._backend_was_auto = _NAME, structured_outputs_config.backend == "auto"


def _grammar_init(original: Any, self: Any, request: Any) -> None:
    """Make the backend at the first request that asks for one."""
    if request.structured_output_request is None:
        return
    if self.backend is None and _is_on(self.vllm_config.structured_outputs_config):
        self.backend = backend_class()(
            self.vllm_config, tokenizer=self.tokenizer, vocab_size=self.vllm_config.model_config.get_vocab_size()
        )
        if hasattr(self, "backend_name"):
            self.backend_name = _NAME
        # All masks of a step in one call, however many there are.
        if self.fill_bitmask_parallel_threshold < self.vllm_config.scheduler_config.max_num_seqs:
            self.fill_bitmask_parallel_threshold = 0
            self.fill_bitmask_parallel_batch_size = self.vllm_config.scheduler_config.max_num_seqs
    if self.backend is not None and isinstance(self.backend, backend_class()):
        request.sampling_params.structured_outputs._backend = _NAME  # a front end that is not Python's sets another
    original(self, request)


def _submit(original: Any, self: Any, batch: Sequence[tuple[Any, ...]]) -> Future[None]:
    """Fill the rows of a step at once, without a thread of Python's."""
    if self.backend is None or not isinstance(self.backend, backend_class()):
        return original(self, batch)  # type: ignore[no-any-return]
    done: Future[None] = Future()
    try:
        self.backend.fill(self._grammar_bitmask, batch)
        done.set_result(None)
    except Exception as error:
        done.set_exception(error)
    return done


@functools.cache
def backend_class() -> type[Any]:
    """The backend, a subclass of vLLM's; made when vLLM is there."""
    import torch
    from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

    class WfsaGrammar(StructuredOutputGrammar):  # type: ignore[misc]
        """One request's text; called by one thread at a time."""

        def __init__(self, backend: WfsaBackend, state: wfsa.State) -> None:
            self.backend, self.state = backend, state

        def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
            for token in tokens:
                if self.state.is_finished():
                    return True  # what follows the end is not looked at
                if not self.backend.is_token(token) or not self.state.commit(token):
                    why = self.backend.why(self.state, token)
                    _LOG.error("request %s: token %d is refused: %s", request_id, token, why)
                    return False
            return True

        def validate_tokens(self, tokens: list[int]) -> list[int]:
            if self.state.is_finished():
                return []
            known = next((k for k, token in enumerate(tokens) if not self.backend.is_token(token)), len(tokens))
            return tokens[: self.state.validate(tokens[:known])]

        def rollback(self, num_tokens: int) -> None:
            self.state.rollback(num_tokens)

        def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
            self.state.fill_bitmask(self.backend.rows_of(bitmask), row=batch_index)

        def is_terminated(self) -> bool:
            return self.state.is_finished()

        def reset(self) -> None:
            self.state.reset()

    @dataclass
    class WfsaBackend(StructuredOutputBackend):  # type: ignore[misc]
        """Compiles requests and fills masks, for one engine."""

        def __post_init__(self) -> None:
            self.settings = settings_of(self.vllm_config)
            self.vocab = vocabulary_of(self.tokenizer, self.vocab_size)
            self.constraints = Constraints(self.vocab, self.settings)
            self._rows: tuple[int, npt.NDArray[np.int32]] | None = None

        def compile_grammar(
            self, request_type: Any, grammar_spec: str, stop_token_ids: Iterable[int] | None = None
        ) -> WfsaGrammar:
            constraint = self.constraints.of(_KINDS[request_type.name], grammar_spec)
            stops = sorted(i for i in stop_token_ids or () if self.is_token(i))
            return WfsaGrammar(self, constraint.start(stop_ids=stops) if stops else constraint.start())

        def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
            return torch.full((max_num_seqs, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)

        def destroy(self) -> None:
            self._rows = None

        def is_token(self, token: int) -> bool:
            return 0 <= token < self.vocab.n_tokens

        def why(self, state: wfsa.State, token: int) -> str:
            return state.explain(token) if self.is_token(token) else f"the vocabulary has {self.vocab.n_tokens} tokens"

        def rows_of(self, bitmask: torch.Tensor) -> npt.NDArray[np.int32]:
            """The same memory for NumPy, kept: to make the view costs more than a mask."""
            known = self._rows
            if known is None or known[0] != bitmask.data_ptr() or known[1].shape != tuple(bitmask.shape):
                known = self._rows = bitmask.data_ptr(), bitmask.numpy()
            return known[1]

        def fill(self, bitmask: torch.Tensor, batch: Sequence[tuple[Any, ...]]) -> None:
            """The rows of (grammar, row, is it constrained, ...), all at once."""
            rows = self.rows_of(bitmask)
            constrained = []
            for grammar, row, applies, *_ in batch:
                if applies and not grammar.is_terminated():
                    constrained.append((grammar.state, row))
                else:
                    rows[row] = -1
            if constrained:
                states, places = zip(*constrained, strict=True)
                wfsa.fill_bitmasks(list(states), rows, threads=self.settings.threads, rows=list(places))

    return WfsaBackend
