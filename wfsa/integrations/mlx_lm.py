"""MLX-LM under constraints.

    masks = wfsa.integrations.mlx_lm.logits_processor(schema, tokenizer)
    mlx_lm.generate(model, tokenizer, prompt, logits_processors=[masks])

The same processor works with ``stream_generate``, ``generate_step``, ``speculative_generate_step`` and
``BatchGenerator``, where several sequences may share the processor: it is called with the tokens of one sequence at a
time, those of the prompt and then those of the text (:mod:`.text_masks`). A step then waits for the tokens of the
previous step, since its mask depends on these tokens.

**Not supported.** A prompt of ``input_embeddings`` alone: MLX-LM calls no processor for the first token after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from wfsa.constraint import Constraint
from wfsa.errors import DecodingError
from wfsa.installing import how_to_install
from wfsa.integrations.hosts import importing, name_and_version, unknown_call_message
from wfsa.integrations.schemas import constraint_of
from wfsa.integrations.serving import vocabulary_of
from wfsa.integrations.text_masks import TextMasks, allowed
from wfsa.vocab import Vocab

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from wfsa.compile_options import SchemaKeywords

_WRITTEN_FOR: Final = "0.32.2"
with importing("wfsa.integrations.mlx_lm", "mlx-lm", _WRITTEN_FOR, remedy=how_to_install("mlx")):
    import mlx.core as mx

HOST: Final = name_and_version("mlx-lm")
_FITS: Final = "pass model=model to logits_processor(), which leaves out tokens that the model cannot choose"


class LogitsProcessor:
    """A processor for ``logits_processors=[...]``; serves any number of texts, in turn or one after the other.

    stop_token_ids: the tokens that end a text, in place of the vocabulary's (``Constraint.start``).
    """

    def __init__(self, constraint: Constraint, *, stop_token_ids: Iterable[int] | None = None) -> None:
        self._masks = TextMasks(constraint, HOST, _FITS, stop_token_ids=stop_token_ids)

    def reset(self) -> None:
        """Makes the next call begin a new text."""
        self._masks.reset()

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Returns float[1, V] logits, -inf where a token is not allowed; ``tokens`` int[n], including the prompt.

        Raises StateError if the model is narrower than the vocabulary, or a token is not allowed.
        """
        if tokens.ndim != 1 or logits.ndim != 2 or len(logits) != 1:
            call = f"calls processors with tokens {tokens.shape} and logits {logits.shape}"
            raise DecodingError(unknown_call_message("mlx-lm", _WRITTEN_FOR, call))
        width = logits.shape[-1]
        words = self._masks.after(np.array(tokens).astype(np.int32), width)
        return mx.where(mx.array(allowed(words, width)), logits, mx.array(-np.inf, logits.dtype))


def logits_processor(
    source: Any,
    tokenizer: Any,
    *,
    model: Any = None,
    stop_token_ids: Iterable[int] | None = None,
    **options: Unpack[SchemaKeywords],
) -> LogitsProcessor:
    """Returns a processor for ``logits_processors=[...]``.

    source: a dict, JSON text, a pydantic model, a dataclass, or any Constraint.
    options: keywords of :func:`wfsa.compile_json_schema`.
    tokenizer: the one that ``mlx_lm.load`` returns, whose ``eos_token_ids`` end a text; or a fast one of transformers.
    model: if given, tokens without logits in the model are left out.

    Raises SchemaError, LimitError, VocabError (a constraint for another vocabulary, an unreadable tokenizer).
    """
    is_wrapper = type(tokenizer).__module__.startswith("mlx_lm.")
    inner = tokenizer._tokenizer if is_wrapper else tokenizer
    width = getattr(getattr(model, "args", None), "vocab_size", None)
    vocab = vocabulary_of(inner) if width is None else Vocab.from_tokenizer(inner, model_config={"vocab_size": width})
    constraint = constraint_of(source, vocab, HOST, options)
    if stop_token_ids is None and is_wrapper:
        stop_token_ids = [token for token in tokenizer.eos_token_ids if token < constraint.vocab.n_tokens] or None
    return LogitsProcessor(constraint, stop_token_ids=stop_token_ids)
