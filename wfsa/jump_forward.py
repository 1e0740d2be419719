"""The tokens of what must come next, so that a serving stack can write them without asking the model.

Problem.  ``state.forced()`` gives bytes; a model reads tokens.  The bytes are sure, their cut into tokens is not: after
``{"`` two properties ``orderId`` and ``orderName`` force ``order``, which is a token; but so is ``orderId``, and a
model that has never read ``order`` followed by ``Id`` goes astray.  Nor may tokens already written be cut anew, as
early implementations did, since sampling, caches and drafts stand on them.

Input → output.  A state and the model's tokenizer → token ids that can be committed one after another and are the
beginning of the forced bytes, byte for byte.  Tokens that could be cut otherwise by what follows are held back.

Method.  Let F be the forced bytes.  A cut of F is sure up to q if no allowed token begins before q and reaches past
the end of F; where one begins at q, the tokenizer may make it of the rest and what follows.  So F is encoded whole, and
again up to each place q where such a token begins, and only tokens that all of these agree on are returned.  For
byte-pair encodings that is all: a text's tokens up to a place where it is cut are the tokens of that beginning alone.
A tokenizer whose pieces depend on what stands further on may still cut another document differently; the text is the
same.

The text so far is encoded in front, since tokenizers treat the beginning of a text differently; where they would not
have cut it at its end, the model has chosen to, and F is encoded by itself.

Cost: one encoding for each place, some tens of microseconds each, and for each place a search among the tokens that
begin with the bytes from there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from wfsa._ext.state import State
from wfsa.errors import StateError
from wfsa.vocab import Vocab

_CONTEXT: Final = 256  # bytes of the text so far that are encoded in front
Encode = Callable[[str], Sequence[int]]


def forced_tokens(state: State, vocab: Vocab, tokenizer: Any, limit: int = 4096) -> list[int]:
    """Tokens that may be committed without asking the model; see :meth:`wfsa.State.forced_tokens`."""
    encode = _encoder(tokenizer)
    forced = _whole_characters(state.forced(limit))
    if not forced:
        return []
    text = state.text()
    agreed: list[int] | None = None
    for end in [len(forced), *_crossings(state, vocab, forced)]:
        part = _whole_characters(forced[:end])
        tokens = _tokens_after(text, part, vocab, encode) if part else []
        if agreed is not None:
            tokens = _common_beginning(agreed, tokens)
        agreed = tokens
        if not agreed:
            return []
    assert agreed is not None
    return agreed[: state.validate(agreed)]


def _crossings(state: State, vocab: Vocab, forced: bytes) -> list[int]:
    """Places in `forced` where an allowed token begins that reaches past its end."""
    ordered = _ordered(vocab)
    after = state.fork()
    after.commit_bytes(forced)
    following = set(after.next_bytes())
    found = []
    for place in range(max(0, len(forced) - ordered.longest + 1), len(forced)):
        rest = forced[place:]
        tried: dict[bytes, bool] = {}
        for at in range(bisect_left(ordered.tokens, rest), len(ordered.tokens)):
            token = ordered.tokens[at]
            if not token.startswith(rest):
                break
            beyond = token[len(rest) :]
            if beyond and beyond[0] in following and beyond not in tried:
                tried[beyond] = after.fork().commit_bytes(beyond)
                if tried[beyond]:
                    found.append(place)
                    break
    return found


def _tokens_after(text: bytes, part: bytes, vocab: Vocab, encode: Encode) -> list[int]:
    """The tokens of `part` behind `text`; fewer, from its beginning, where its bytes cannot be told from the tokens."""
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


class _Ordered:
    """The tokens that are text, in byte order."""

    def __init__(self, vocab: Vocab) -> None:
        special = set(vocab.special_ids.tolist())
        self.tokens = sorted(token for i, token in enumerate(vocab.tokens) if i not in special)
        self.longest = max(map(len, self.tokens), default=0)


_ORDERED: WeakKeyDictionary[Vocab, _Ordered] = WeakKeyDictionary()


def _ordered(vocab: Vocab) -> _Ordered:
    if vocab not in _ORDERED:
        _ORDERED[vocab] = _Ordered(vocab)
    return _ORDERED[vocab]


def _whole_characters(data: bytes) -> bytes:
    """Without a character of UTF-8 that is cut at the end."""
    for n in range(1, min(4, len(data)) + 1):
        lead = data[-n]
        if lead & 0xC0 != 0x80:
            size = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return data if n >= size else data[:-n]
    return data


def _encoder(tokenizer: Any) -> Encode:
    """Text to ids, without special tokens: of a tiktoken, tokenizers, transformers or sentencepiece tokenizer."""
    if hasattr(tokenizer, "encode_ordinary"):
        return tokenizer.encode_ordinary  # type: ignore[no-any-return]
    if not hasattr(tokenizer, "encode"):
        if callable(tokenizer):
            return tokenizer  # type: ignore[no-any-return]
        raise StateError(
            f"a {type(tokenizer).__name__} is no tokenizer: it needs encode() or encode_ordinary(), or to be a function"
        )

    def encode(text: str) -> Sequence[int]:
        try:
            found = tokenizer.encode(text, add_special_tokens=False)
        except TypeError:  # sentencepiece
            found = tokenizer.encode(text)
        return getattr(found, "ids", found)  # type: ignore[no-any-return]

    return encode
