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
import os
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import fields
from typing import Any, Literal, get_args

import wfsa
from wfsa.errors import WfsaError
from wfsa.integrations.serving import Settings, vocabulary_of
from wfsa.integrations.vllm_requests import KINDS
from wfsa.requests import compile_kind

_NAME = "wfsa"
_ON = ("1", "true", "yes", "on")
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
        compile_kind(KINDS[kind.name], text or None, vocab, mode="lazy", max_seconds=Settings().max_seconds)
    except WfsaError as error:
        raise refused(f"wfsa: {error}") from None
    asked._backend, asked._backend_was_auto = _NAME, structured_outputs_config.backend == "auto"


def _grammar_init(original: Any, self: Any, request: Any) -> None:
    """Make the backend at the first request that asks for one."""
    if request.structured_output_request is None:
        return
    from wfsa.integrations.vllm_backend import WfsaBackend

    if self.backend is None and _is_on(self.vllm_config.structured_outputs_config):
        self.backend = WfsaBackend(
            self.vllm_config, tokenizer=self.tokenizer, vocab_size=self.vllm_config.model_config.get_vocab_size()
        )
        if hasattr(self, "backend_name"):
            self.backend_name = _NAME
        # All masks of a step in one call, however many there are.
        if self.fill_bitmask_parallel_threshold < self.vllm_config.scheduler_config.max_num_seqs:
            self.fill_bitmask_parallel_threshold = 0
            self.fill_bitmask_parallel_batch_size = self.vllm_config.scheduler_config.max_num_seqs
    if isinstance(self.backend, WfsaBackend):
        request.sampling_params.structured_outputs._backend = _NAME  # a front end that is not Python's sets another
    original(self, request)


def _submit(original: Any, self: Any, batch: Sequence[tuple[Any, ...]]) -> Future[None]:
    """Fill the rows of a step at once, without a thread of Python's."""
    from wfsa.integrations.vllm_backend import WfsaBackend

    if not isinstance(self.backend, WfsaBackend):
        return original(self, batch)  # type: ignore[no-any-return]
    done: Future[None] = Future()
    try:
        self.backend.fill(self._grammar_bitmask, batch)
        done.set_result(None)
    except Exception as error:
        done.set_exception(error)
    return done
