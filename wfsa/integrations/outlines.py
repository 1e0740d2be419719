"""Outlines under constraints of wfsa, in place of those of its own backends.

    model = outlines.from_transformers(hf_model, tokenizer)
    generator = outlines.Generator(model, processor=wfsa.integrations.outlines.logits_processor(schema, model))
    generator("A person: ")

A generator hands its processor to the program that the model is of, unchanged, and calls ``reset()`` before every
text: so what is made here is the processor of that program's own door.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from wfsa.compile_options import CompileOptions
from wfsa.errors import DecodingError
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.installing import how_to_install
from wfsa.integrations.hosts import known, named

_WRITTEN_FOR: Final = "1.3.3"
with known("wfsa.integrations.outlines", "outlines", _WRITTEN_FOR, remedy=how_to_install("outlines")):
    from outlines.models import MLXLM, LlamaCpp, Transformers

HOST: Final = named("outlines")


def logits_processor(
    source: Any,
    model: Any,
    *,
    stop_ids: Iterable[int] | None = None,
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
) -> Any:
    """What goes into ``outlines.Generator(model, processor=...)``.

    source: a dict, JSON text, a pydantic model, a dataclass, or any Constraint.
    model: of ``outlines.from_transformers``, ``from_mlxlm`` or ``from_llamacpp``. With the last one, ``check()`` of the
        processor raises what went wrong in it.

    Raises DecodingError on another model; SchemaError, LimitError, VocabError (a constraint for another vocabulary).
    """
    said: dict[str, Any] = {"stop_ids": stop_ids, "schema_options": schema_options, "options": options}
    if isinstance(model, Transformers):
        from wfsa.integrations import transformers

        return transformers.logits_processor(source, model.hf_tokenizer, model=model.model, **said)
    if isinstance(model, MLXLM):
        from wfsa.integrations import mlx_lm

        return mlx_lm.logits_processor(source, model.mlx_tokenizer, model=model.model, **said)
    if isinstance(model, LlamaCpp):
        from wfsa.integrations import llama_cpp

        return llama_cpp.logits_processor(source, model.model, **said)
    raise DecodingError(
        f"{HOST}: {type(model).__name__} takes no logits processor of this kind; take a Transformers, MLXLM or "
        "LlamaCpp model, or for a server its own door"
    )
