"""Doors to programs that run models: masks where their decoding loops ask for them.

    wfsa.generate                            prompts and a schema in, parsed documents out
    wfsa.integrations.transformers           generate of the transformers library
    wfsa.integrations.continuous_batching    its continuous batching
    wfsa.integrations.llama_cpp              llama.cpp's sampler chain, in any build of its library; llama-cpp-python
    wfsa.integrations.vllm                   a backend of vLLM's structured outputs
    wfsa.integrations.sglang                 a grammar backend of SGLang
    wfsa.integrations.serving                what these two share
    wfsa.integrations.mlx_lm                 logits processors of MLX-LM
    wfsa.integrations.outlines               processors for Outlines' generators
    wfsa.integrations.genlm_control          a potential of genlm-control
    wfsa.integrations.exllamav3              a filter of ExLlamaV3
    wfsa.integrations.lmdeploy               logits processors of LMDeploy's PyTorch engine
    wfsa.integrations.tensorrt_llm           logits processors of TensorRT-LLM

`logits_processor(source, tokenizer, **options)` of a module makes what the program of a user takes: `source` is a
schema, a type or any Constraint, and other options are the program's own. Servers, vLLM and SGLang, find wfsa by
themselves.

Each module imports its program, and is itself imported when it is first named.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wfsa.integrations import (
        continuous_batching,
        exllamav3,
        genlm_control,
        llama_cpp,
        lmdeploy,
        mlx_lm,
        outlines,
        sglang,
        tensorrt_llm,
        transformers,
        vllm,
    )

__all__ = [
    "continuous_batching",
    "exllamav3",
    "genlm_control",
    "llama_cpp",
    "lmdeploy",
    "mlx_lm",
    "outlines",
    "sglang",
    "tensorrt_llm",
    "transformers",
    "vllm",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
