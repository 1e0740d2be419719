"""The tokens of forced bytes, which a serving stack can write without running the model.

Problem.  ``state.forced_bytes()`` returns bytes; a model reads tokens.  The bytes are certain, but their split is not.
After ``{"`` two properties ``orderId`` and ``orderName`` force ``order``, which is a token.  But ``orderId`` is a token
too, and a model that has never read ``order`` followed by ``Id`` then writes nonsense.  Tokens already written must not
be split again, as early implementations did, since sampling, caches and drafts depend on them.

Input → output.  A state and the model's tokenizer → token ids that can be committed one after another and spell the
beginning of the forced bytes.  Tokens whose split could depend on later bytes are held back.

Method.  Let F be the forced bytes.  The split of F is certain up to q if no allowed token begins before q and ends
after F.  If such a token begins at q, the tokenizer may use it for the rest of F and more.  So F is encoded
whole, and again up to each place q where such a token begins, and the common beginning of all results is returned.  For
byte-pair encodings this is complete: the tokens up to a token boundary are the tokens of that prefix alone.  A
tokenizer whose pieces depend on later text may still split another document differently; the text is the same.

The text so far is encoded before F, since tokenizers treat the beginning of a text differently.  If the tokenizer would
not have a boundary at the end of that text, F is encoded on its own: the model has chosen that boundary.

Cost: one encoding for each place, some tens of microseconds each.  The places are found by compiled code
(ext/drafts/crossings.hpp), which ends its walk below the rest of F at the first allowed token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from wfsa._ext.drafts import crossings
from wfsa._ext.state import State
from wfsa.errors import StateError
from wfsa.vocab import Vocab

_CONTEXT: Final = 256  # number of bytes of the text so far that are encoded before the forced bytes
Encode = Callable[[str], Sequence[int]]


def forced_tokens(state: State, vocab: Vocab, tokenizer: Any, limit: int = 4096) -> list[int]:
    """Returns tokens that may be committed without running the model; see :meth:`wfsa.State.forced_tokens`."""
    encode = _encoder(tokenizer)
    forced = _whole_characters(state.forced_bytes(limit))
    if not forced:
        return []
    text = state.output_bytes()
    agreed: list[int] | None = None
    for end in [len(forced), *crossings(state, forced)]:
        part = _whole_characters(forced[:end])
        tokens = _tokens_after(text, part, vocab, encode) if part else []
        if agreed is not None:
            tokens = _common_beginning(agreed, tokens)
        agreed = tokens
        if not agreed:
            return []
    assert agreed is not None
    return agreed[: state.validate(agreed)]


def _tokens_after(text: bytes, part: bytes, vocab: Vocab, encode: Encode) -> list[int]:
    """Returns the tokens of `part` after `text`, or [] if no split of them spells exactly `part`."""
    context = text[-_CONTEXT:]
    while context and context[0] & 0xC0 == 0x80:
        context = context[1:]
    for front in (context, b"") if context else (b"",):
        try:
            ids = list(encode((front + part).decode()))
        except UnicodeDecodeError:  # the text ends inside a character
            continue
        left = len(part)
        at = len(ids)
        while at and left > 0:
            at -= 1
            left -= len(vocab.tokens[ids[at]])
        if left == 0 and b"".join(vocab.tokens[i] for i in ids[at:]) == part:
            return ids[at:]
    return []


def _common_beginning(one: list[int], other: list[int]) -> list[int]:
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return one[:n]


def _whole_characters(data: bytes) -> bytes:
    """Returns `data` without an incomplete UTF-8 character at its end."""
    for n in range(1, min(4, len(data)) + 1):
        lead = data[-n]
        if lead & 0xC0 != 0x80:
            size = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return data if n >= size else data[:-n]
    return data


def _encoder(tokenizer: Any) -> Encode:
    """Returns the function from text to ids, without special tokens, of a tokenizer of any supported library."""
    if hasattr(tokenizer, "encode_ordinary"):
        return tokenizer.encode_ordinary  # type: ignore[no-any-return]
    if not hasattr(tokenizer, "encode"):
        if callable(tokenizer):
            return tokenizer  # type: ignore[no-any-return]
        raise StateError(
            f"{type(tokenizer).__name__} is not a tokenizer; pass one with encode() or encode_ordinary(), or a function"
        )

    def encode(text: str) -> Sequence[int]:
        try:
            encoded = tokenizer.encode(text, add_special_tokens=False)
        except TypeError:  # sentencepiece
            encoded = tokenizer.encode(text)
        return getattr(encoded, "ids", encoded)  # type: ignore[no-any-return]

    return encode
