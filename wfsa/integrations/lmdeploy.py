"""LMDeploy's PyTorch engine under constraints.

    masks = wfsa.integrations.lmdeploy.logits_processor(schema, tokenizer, bos_token_id=config.bos_token_id)
    pipe(prompts, gen_config=GenerationConfig(logits_processors=[masks]))

The engine calls a processor with the tokens of one sequence at a time, the prompt's first (:mod:`.text_masks`), so
sequences may share one. It fills rows of a batch up to one length, on the left, and where two batches become one also
behind what was written; what it fills with is the model's ``bos_token_id``, or token 0. So special tokens are left out
of a row before it is looked up, which needs that token to be a special one.

What goes wrong ends the text and is logged: an exception would end the engine.
Written for 0.18.0, from its sources; the engine needs a GPU, and was not run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from wfsa.bitmask import apply_bitmask_
from wfsa.compile_options import CompileOptions
from wfsa.constraint import Constraint
from wfsa.errors import VocabError
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.integrations.hosts import named
from wfsa.integrations.schemas import constraint_of
from wfsa.integrations.serving import vocabulary_of
from wfsa.integrations.text_masks import TextMasks

HOST: Final = named("lmdeploy")
_FITS: Final = "compile the constraint for Vocab.from_tokenizer(tokenizer, model_config=config) of this model"


class LogitsProcessor:
    """What LMDeploy takes in ``GenerationConfig(logits_processors=[...])``; for any number of texts at once.

    bos_token_id: of the model's config. stop_ids: the tokens that end a text, in place of the vocabulary's.
    Raises VocabError where rows are filled up with a token that is text.
    """

    def __init__(
        self, constraint: Constraint, *, bos_token_id: int | None, stop_ids: Iterable[int] | None = None
    ) -> None:
        filler = 0 if bos_token_id is None else bos_token_id
        vocab = constraint.vocab
        self._is_special = np.zeros(vocab.n_tokens, np.bool_)
        self._is_special[vocab.special_ids] = True
        self._is_special[sorted(constraint.grammar_tokens())] = False
        if filler < vocab.n_tokens and not self._is_special[filler]:
            raise VocabError(
                f"{HOST} fills up rows with token {filler} (the config's bos_token_id, or 0), which the constraint can "
                f"write ({vocab.tokens[filler]!r}): rows could not be told apart; give the model's config a "
                "bos_token_id that is a special token, or use response_format"
            )
        self._filler = filler
        self._masks = TextMasks(constraint, HOST, _FITS, stop_ids=stop_ids)

    def check(self) -> None:
        """Raise what went wrong in a call, where the engine runs in this process."""
        self._masks.check()

    def __call__(self, input_ids: Any, logits: Any) -> Any:
        """float[V], masked in place; ``input_ids`` int64[n], prompt, text and what the row was filled up with."""
        row = input_ids.cpu().numpy().astype(np.int32)
        known = (row >= 0) & (row < len(self._is_special))
        text = row[(row != self._filler) & ~(known & self._is_special[np.where(known, row, 0)])]
        words = self._masks.after_or_end(text, logits.shape[-1])
        apply_bitmask_(logits, words)
        return logits


def logits_processor(
    source: Any,
    tokenizer: Any,
    *,
    bos_token_id: int | None,
    stop_ids: Iterable[int] | None = None,
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
) -> LogitsProcessor:
    """What goes into ``GenerationConfig(logits_processors=[...])``.

    source: a dict, JSON text, a pydantic model, a dataclass, or any Constraint.
    tokenizer: the model's, a fast one of transformers. bos_token_id: that of the model's config, or None.

    Raises SchemaError, LimitError, VocabError (a constraint for another vocabulary, or rows filled up with text).
    """
    constraint = constraint_of(source, vocabulary_of(tokenizer), HOST, schema_options, options)
    return LogitsProcessor(constraint, bos_token_id=bos_token_id, stop_ids=stop_ids)
