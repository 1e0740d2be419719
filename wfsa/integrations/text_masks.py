"""Masks for programs that call a function with a row of tokens, the prompt's first, and want to know what comes next.

**Problem.** Such a program does not say where the prompt ends. One function may be called for several texts in turn
(a batch), and for tokens that are taken back again (drafts).

**Method.** A row belongs to a text if it is one token longer than a row that was shown before, or is that row itself;
anything else is the prompt of a new text. So what is kept for a row is where its prompt ends, under a digest of its
tokens, and the state is found by the tokens behind that (:mod:`.prefix_states`). A program that can tell where the
prompt ends says so, and nothing has to be found.

What this cannot tell: a prompt that is a row of an earlier text, or one token longer than one, goes on with that text;
``reset()`` says that it does not.

**Cost.** Two digests of four bytes a token, beside what :mod:`.prefix_states` costs.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa._ext.state import State
from wfsa.bitmask import allocate_bitmask
from wfsa.bitmask.allocate import words_for
from wfsa.constraint import Constraint
from wfsa.errors import StateError
from wfsa.integrations.prefix_states import PrefixStates

Tokens = npt.NDArray[np.int32]
Words = npt.NDArray[np.int32]

_LOG = logging.getLogger("wfsa.integrations")
_SHOWN: Final = 1 << 14  # rows whose prompt is known: those of the last steps, of all texts together
_KEPT: Final = 1 << 10  # states


class TextMasks:
    """Masks of texts under one constraint, each text by its tokens.

    host: who asks, with its version, for messages; fits: what to do where the vocabulary is not the model's.
    stop_ids: the tokens that end a text, in place of the vocabulary's (``Constraint.start``).
    """

    def __init__(self, constraint: Constraint, host: str, fits: str, *, stop_ids: Iterable[int] | None = None) -> None:
        self.constraint, self.host, self.fits = constraint, host, fits
        self.stop_ids = None if stop_ids is None else sorted(stop_ids)
        self.start: State = constraint.start(stop_ids=self.stop_ids)
        self.size = constraint.vocab.size
        self.error: Exception | None = None
        self._states = PrefixStates([self.start], _KEPT)
        self._prompts: OrderedDict[bytes, int] = OrderedDict()  # digest of a row: the length of its prompt

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what texts have left in it."""
        return _made, (self.constraint, self.host, self.fits, self.stop_ids)

    def reset(self) -> None:
        """The next row is a prompt, whatever it is."""
        self.error = None
        self._prompts.clear()
        self._states.clear()

    def after(self, row: Tokens, width: int, prompt_length: int | None = None) -> Words:
        """int32[ceil(V/32)]: what may follow a row of int32[n] tokens in a model with logits for `width` tokens.

        A text that has ended may only end again. Raises StateError where the model is narrower than the vocabulary, or
        a token of the text is not allowed.
        """
        if width < self.size:
            raise StateError(
                f"{self.host}: the model has logits for {width} tokens, the constraint's vocabulary {self.size}: "
                f"they are not of one model; {self.fits}"
            )
        begin = self._prompt_length(row) if prompt_length is None else prompt_length
        state = self._states.after(0, row[begin:])
        if state is None:
            raise StateError(
                f"{self.host}: one of the tokens {row[begin:][-8:].tolist()} is not allowed by the constraint: another "
                "processor or a forced token chose it, or a prompt goes on from a text before it (then call reset())"
            )
        if state.is_finished():
            return self.ends()
        words: Words = allocate_bitmask(1, self.size)[0]
        state.fill_bitmask(words)
        return words

    def after_or_end(self, row: Tokens, width: int, prompt_length: int | None = None) -> Words:
        """The same; where something goes wrong, only end tokens, since the program cannot be told by an exception.

        The first error is kept for :meth:`check`. Raises it where the model has no logits for any end token.
        """
        try:
            return self.after(row, width, prompt_length)
        except Exception as error:
            if min(self.start.end_ids, default=width) >= width:
                raise
            if self.error is None:
                _LOG.error("%s", error)
            self.error = self.error or error
            return self.ends()[: words_for(width)]

    def check(self) -> None:
        """Raise the first thing that has gone wrong since the last call of this."""
        error, self.error = self.error, None
        if error is not None:
            raise error

    def ends(self) -> Words:
        """The tokens that end a text."""
        words: Words = allocate_bitmask(1, self.size)[0]
        words[:] = 0
        for token in self.start.end_ids:
            words.view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))
        return words

    def _prompt_length(self, row: Tokens) -> int:
        this = digest(row)
        known = self._prompts.get(this)
        if known is None and len(row):
            known = self._prompts.get(digest(row[:-1]))
        found = len(row) if known is None else known
        self._prompts[this] = found
        self._prompts.move_to_end(this)
        while len(self._prompts) > _SHOWN:
            self._prompts.popitem(last=False)
        return found


def allowed(words: Words, width: int) -> npt.NDArray[np.bool_]:
    """bool[width] of int32[W] words; False beyond them."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:width]
    return np.pad(bits.view(np.bool_), (0, width - len(bits)))


def _made(constraint: Constraint, host: str, fits: str, stop_ids: list[int] | None) -> TextMasks:
    return TextMasks(constraint, host, fits, stop_ids=stop_ids)


def digest(row: Tokens) -> bytes:
    """Sixteen bytes that stand for a row."""
    return blake2b(row.tobytes(), digest_size=16).digest()
