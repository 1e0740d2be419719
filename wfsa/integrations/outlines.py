"""Outlines under constraints of wfsa, in place of Outlines' own backends.

    model = outlines.from_transformers(hf_model, tokenizer)
    generator = outlines.Generator(model, processor=wfsa.integrations.outlines.logits_processor(schema, model))
    generator("A person: ")

A generator passes its processor unchanged to the library that runs the model, and calls ``reset()`` before every text.
So this module returns the processor of the integration for that library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from wfsa.errors import DecodingError
from wfsa.installing import how_to_install
from wfsa.integrations.hosts import importing, name_and_version

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from wfsa.compile_options import SchemaKeywords

_WRITTEN_FOR: Final = "1.3.3"
with importing("wfsa.integrations.outlines", "outlines", _WRITTEN_FOR, remedy=how_to_install("outlines")):
    from outlines.models import MLXLM, LlamaCpp, Transformers

HOST: Final = name_and_version("outlines")


def logits_processor(
    source: Any,
    model: Any,
    *,
    stop_token_ids: Iterable[int] | None = None,
    **options: Unpack[SchemaKeywords],
) -> Any:
    """Returns a processor for ``outlines.Generator(model, processor=...)``.

    source: a dict, JSON text, a pydantic model, a dataclass, or any Constraint.
    options: keywords of :func:`wfsa.compile_json_schema`.
    model: from ``outlines.from_transformers``, ``from_mlxlm`` or ``from_llamacpp``. With the last, ``check()`` of the
        processor raises the first error of its calls.

    Raises DecodingError for another model; SchemaError, LimitError, VocabError (a constraint for another vocabulary).
    """
    keywords: dict[str, Any] = {"stop_token_ids": stop_token_ids, **options}
    if isinstance(model, Transformers):
        from wfsa.integrations import transformers

        return transformers.logits_processor(source, model.hf_tokenizer, model=model.model, **keywords)
    if isinstance(model, MLXLM):
        from wfsa.integrations import mlx_lm

        return mlx_lm.logits_processor(source, model.mlx_tokenizer, model=model.model, **keywords)
    if isinstance(model, LlamaCpp):
        from wfsa.integrations import llama_cpp

        return llama_cpp.logits_processor(source, model.model, **keywords)
    raise DecodingError(
        f"{HOST}: {type(model).__name__} takes no logits processor of this kind; use a Transformers, MLXLM or "
        "LlamaCpp model, or the integration of the server"
    )
