"""Prompts and a schema in, parsed documents out: the common case of ``generate`` in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wfsa.compile_options import CompileOptions
from wfsa.errors import DecodingError, DecodingWarning, DocumentError
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.integrations.schemas import reader_of


class Documents(list[Any]):
    """The documents, in the order of the prompts, and those of one prompt side by side.

    texts: str each, as they were written.
    cut_off: the places where ``max_new_tokens`` came before the end, under constraints that do not know how many tokens
        they need (``State.min_tokens``): the others are always completed. The value there is None, unless what was
        written is a document as it stands.
    errors: by place, the :class:`wfsa.DocumentError` of a text that fits the schema and is refused by the type, for
        example by a validator. Its ``text`` is what was written, its ``__cause__`` what the type raised. The value
        there is None.
    """

    def __init__(
        self, values: Sequence[Any], texts: Sequence[str], cut_off: Sequence[int], errors: Mapping[int, DocumentError]
    ) -> None:
        super().__init__(values)
        self.texts = list(texts)
        self.cut_off = list(cut_off)
        self.errors = dict(errors)


def generate(
    model: Any,
    tokenizer: Any,
    prompts: str | Sequence[Mapping[str, Any]] | Sequence[str | Sequence[Mapping[str, Any]]],
    schema: Any,
    *,
    max_new_tokens: int = 512,
    wrap_up: int = 0,
    retries: int = 0,
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
    **generate_keywords: Any,
) -> Documents:
    """Let a transformers model write one document for each prompt, and parse it.

    model, tokenizer: a causal language model of transformers and its fast tokenizer.
    prompts: texts, or lists of chat messages, which go through the tokenizer's chat template. One str or one chat is
        one prompt.
    schema: what :func:`wfsa.compile_json_schema` takes, or a Constraint; a list has one a prompt. Documents of a
        pydantic model or a dataclass are objects of it, those of a function (which is not called) dicts of its
        arguments, those of a schema Python's JSON values, those of a constraint that is no schema's texts.
    max_new_tokens: every document is completed within so many tokens.
    wrap_up: fewer than so many tokens before what is needed then, no optional member and no further item begins.
    retries: how often a prompt is generated anew while its type refuses a document of it (a validator, for example).
        These generations sample (``do_sample=True``), whatever the first one did: greedy decoding would write the same
        text again. What is still refused then is in ``errors``.
    generate_keywords: for ``model.generate``: ``do_sample``, ``num_beams``, ``num_return_sequences``.

    Returns :class:`Documents`: a list that also says which documents were cut off and which were refused by their type;
    a :class:`wfsa.DecodingWarning` does, too. Raises what
    :func:`wfsa.integrations.transformers.logits_processor` raises; DecodingError on prompts that do not fit the
    schemas, and on a sequence that is no document at all (a beam search with more beams than there are texts).
    """
    from wfsa.integrations.transformers import HOST, ConstraintLogitsProcessor, logits_processor

    listed: list[Any] = [prompts] if isinstance(prompts, str) else list(prompts)
    if listed and all(isinstance(one, Mapping) for one in listed):
        listed = [listed]  # one chat
    if not listed:
        return Documents([], [], [], {})
    if type(retries) is not int or retries < 0:
        raise DecodingError(f"retries must be a whole number from 0 on, not {retries!r}")
    if getattr(model.config, "is_encoder_decoder", False):
        raise DecodingError(f"{HOST}: an encoder-decoder model; call its generate with wfsa's processor")
    schemas = list(schema) if isinstance(schema, (list, tuple)) else [schema] * len(listed)
    if len(schemas) != len(listed):
        raise DecodingError(f"{len(schemas)} schemas for {len(listed)} prompts; give one for all, or one a prompt")
    if any(one is None for one in schemas):
        raise DecodingError("None is no schema; prompts without one need no wfsa")
    masked = logits_processor(
        schema if not isinstance(schema, (list, tuple)) else schemas, tokenizer, model=model,
        max_new_tokens=max_new_tokens, wrap_up=wrap_up, schema_options=schema_options, options=options,
    )  # fmt: skip
    rows = [_ids(tokenizer, prompt) for prompt in listed]
    readers = [reader_of(one) for one in schemas]
    found = _written(model, tokenizer, rows, masked, readers, max_new_tokens, generate_keywords)
    constraints = masked.constraints if len(masked.constraints) == len(rows) else masked.constraints * len(rows)
    for _ in range(retries):
        refused = [number for number, some in enumerate(found) if any(document.error for document in some)]
        if not refused:
            break
        again = ConstraintLogitsProcessor(
            [constraints[number] for number in refused], max_new_tokens=max_new_tokens, wrap_up=wrap_up
        )
        anew = _written(
            model, tokenizer, [rows[number] for number in refused], again, [readers[number] for number in refused],
            max_new_tokens, {**generate_keywords, "do_sample": True},
        )  # fmt: skip
        for number, some in zip(refused, anew, strict=True):
            good = [document for document in some if not document.error and not document.is_cut_off]
            found[number] = [good.pop() if document.error and good else document for document in found[number]]
    return _listed([document for some in found for document in some])


@dataclass(frozen=True, slots=True)
class _Document:
    """One sequence: its text, and its value or what the type raised instead."""

    text: str
    is_cut_off: bool
    value: Any = None
    error: Exception | None = None


def _written(
    model: Any,
    tokenizer: Any,
    rows: list[list[int]],
    masked: Any,
    readers: list[Callable[[str], Any]],
    max_new_tokens: int,
    keywords: Mapping[str, Any],
) -> list[list[_Document]]:
    """Let the model go on from the token ids of each prompt; the documents of each."""
    import torch

    # Stopping and padding by what the constraint takes for the end.
    ends = masked.end_ids
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else ends[0]
    width = max(1, *map(len, rows))
    ids = torch.full((len(rows), width), pad, dtype=torch.int64)
    seen = torch.zeros((len(rows), width), dtype=torch.int64)
    for row, tokens in enumerate(rows):
        if tokens:
            ids[row, -len(tokens) :] = torch.tensor(tokens)
            seen[row, -len(tokens) :] = 1
        else:  # nothing to read: the model begins at the padding
            seen[row, -1] = 1
    written = model.generate(
        input_ids=ids.to(model.device), attention_mask=seen.to(model.device), max_new_tokens=max_new_tokens,
        logits_processor=[masked], **{"eos_token_id": list(ends), "pad_token_id": pad, **keywords},
    )  # fmt: skip
    sequences = getattr(written, "sequences", written)[:, width:].tolist()
    each = len(sequences) // len(rows)
    documents = [
        _document(place, tokens, masked.start(place // each).fork(), readers[place // each])
        for place, tokens in enumerate(sequences)
    ]
    return [documents[first : first + each] for first in range(0, len(documents), each)]


def _ids(tokenizer: Any, prompt: str | Sequence[Mapping[str, Any]]) -> list[int]:
    if isinstance(prompt, str):
        return list(tokenizer(prompt)["input_ids"])
    text = tokenizer.apply_chat_template(list(prompt), tokenize=False, add_generation_prompt=True)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _document(place: int, tokens: list[int], state: Any, read: Callable[[str], Any]) -> _Document:
    n = state.commit_tokens(tokens)
    if n < len(tokens) and not state.is_finished():
        raise DecodingError(
            f"sequence {place} is no document: token {tokens[n]} is not allowed after {state.text()[-40:]!r}; "
            "fewer beams, or no processor that forces tokens"
        )
    text = state.text().decode("utf-8", "replace")
    is_cut_off = not state.is_finished()
    if is_cut_off and not state.is_accepting():
        return _Document(text, is_cut_off)
    try:
        return _Document(text, is_cut_off, read(text))
    except Exception as error:  # validators raise what they like, and the other documents are good
        return _Document(text, is_cut_off, error=error)


def _listed(documents: list[_Document]) -> Documents:
    """The values, with a warning of those that are missing."""
    texts = [document.text for document in documents]
    cut_off = [place for place, document in enumerate(documents) if document.is_cut_off]
    errors = {}
    for place, document in enumerate(documents):
        if document.error is not None:
            what = f"document {place} is refused by its type: {document.error}; it is {document.text!r}"
            errors[place] = DocumentError(what, document.text)
            errors[place].__cause__ = document.error
    if cut_off:
        warnings.warn(
            f"{len(cut_off)} of {len(texts)} documents were cut off by max_new_tokens: {cut_off}; raise it, or bound "
            "strings and arrays in the schema (maxLength, maxItems)",
            DecodingWarning,
            stacklevel=3,
        )
    if errors:
        warnings.warn(
            f"{len(errors)} of {len(texts)} documents were refused by their type: {list(errors)}; see `errors`, or "
            "generate these prompts anew with retries=",
            DecodingWarning,
            stacklevel=3,
        )
    return Documents([document.value for document in documents], texts, cut_off, errors)
