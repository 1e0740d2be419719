"""A text as tokens of a vocabulary, for what shows what happens token by token.

A vocabulary has only the tokens: unless the model's own tokenizer can be run, each cut is the longest token that the
text goes on with.  A text is cut in blocks, so that an edit in a long document cuts anew only what stands around it. A
block says how far the cutter looked: as long as the text agrees up to there, the block is what it was.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Final, NamedTuple

from wfsa.errors import WfsaError
from wfsa.vocab.vocabulary import Vocab

BLOCK: Final = 512  # bytes, about
_BLANKS: Final = b" \n\r\t"


class Block(NamedTuple):
    """Some tokens of a text."""

    ids: list[int]  # -1 for a byte that no token spells
    end: int  # of the block in the text
    looked: int  # the block is the same in each text that agrees up to here; beyond the text: its end was seen


class Greedy:
    """The longest token at each place.  One for a vocabulary: to make it takes a look at every token."""

    def __init__(self, vocab: Vocab) -> None:
        special = set(vocab.special_token_ids.tolist())
        self._ids: dict[bytes, int] = {}
        for i, token in enumerate(vocab.tokens):
            if token and i not in special:
                self._ids.setdefault(token, i)
        self._longest = max(map(len, self._ids), default=1)
        by_byte: dict[int, set[int]] = {}
        for token in self._ids:
            by_byte.setdefault(token[0], set()).add(len(token))
        self._lengths = {byte: sorted(lengths, reverse=True) for byte, lengths in by_byte.items()}

    def cut(self, text: bytes, start: int) -> Block:
        ids, at = [], start
        while at < len(text) and at - start < BLOCK:
            for length in self._lengths.get(text[at], ()):
                found = self._ids.get(text[at : at + length])
                if found is not None and at + length <= len(text):
                    ids.append(found)
                    at += length
                    break
            else:
                ids.append(-1)
                at += 1
        return Block(ids, at, at + self._longest)


class Encoded:
    """By a function from text to ids, asked for pieces that end before a blank: no tokenizer's word goes beyond it."""

    def __init__(self, vocab: Vocab, encode: Callable[[str], list[int]]) -> None:
        self._vocab, self._encode, self._greedy = vocab, encode, Greedy(vocab)
        self._special = frozenset(vocab.special_token_ids.tolist())

    def cut(self, text: bytes, start: int) -> Block:
        end = _piece_end(text, start)
        piece = text[start:end]
        ids: list[int] = []
        try:
            ids = self._encode(piece.decode("utf-8"))
            fits = b"".join(self._vocab.tokens[i] for i in ids) == piece and self._special.isdisjoint(ids)
        except (UnicodeDecodeError, WfsaError, IndexError, KeyError):
            fits = False
        # A tokenizer may change the text (normalise it, add a blank), have no way to write it, or take the name of a
        # special token for the token, which is no text.
        if not fits:
            ids, at = [], 0
            while at < len(piece):
                block = self._greedy.cut(piece, at)
                ids, at = ids + block.ids, block.end
        return Block(ids, end, end + 1)


def _piece_end(text: bytes, start: int) -> int:
    """Before a blank behind something else; else between characters."""
    most = start + 4 * BLOCK
    for at in range(start + BLOCK, min(most, len(text))):
        if text[at] in _BLANKS and text[at - 1] not in _BLANKS:
            return at
    if most >= len(text):
        return len(text)
    while most > start + BLOCK and text[most] & 0xC0 == 0x80:
        most -= 1
    return most


def cut(vocab: Vocab, text: bytes, cutter: Greedy | Encoded | None = None) -> list[int]:
    """Ids whose bytes are the text, as far as there are tokens for it; special tokens are not among them.

    Who cuts more than one text has a cutter, and gives it: else one is made for each.
    """
    cutter = cutter or Greedy(vocab)
    ids: list[int] = []
    at = 0
    while at < len(text):
        block = cutter.cut(text, at)
        ids += block.ids
        at = block.end
    return list(takewhile(lambda token: token >= 0, ids))
