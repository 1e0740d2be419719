"""Integrations: masks inside the decoding loops of programs that run models.

    wfsa.generate                            one call from prompts and a schema to parsed documents
    wfsa.integrations.transformers           generate of the transformers library
    wfsa.integrations.continuous_batching    its continuous batching
    wfsa.integrations.llama_cpp              llama.cpp's sampler chain, in any build; llama-cpp-python
    wfsa.integrations.vllm                   a backend of vLLM's structured outputs
    wfsa.integrations.sglang                 a grammar backend of SGLang
    wfsa.integrations.serving                the parts that these two share
    wfsa.integrations.mlx_lm                 logits processors of MLX-LM
    wfsa.integrations.mlx_lm_server          the server of MLX-LM, with constraints
    wfsa.integrations.outlines               processors for Outlines' generators
    wfsa.integrations.genlm_control          a potential of genlm-control
    wfsa.integrations.exllamav3              a filter of ExLlamaV3
    wfsa.integrations.lmdeploy               logits processors of LMDeploy's PyTorch engine
    wfsa.integrations.tensorrt_llm           logits processors of TensorRT-LLM

`logits_processor(source, tokenizer, **options)` of a module returns the object that the program accepts: a logits
processor, a filter or a potential. `source` is a schema, a type or any Constraint; further options are the program's
own. The servers vLLM and SGLang find wfsa through its entry points.

Each module imports its program. A module is imported when it is first named.
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
