"""A buffer for the masks of a batch."""

from __future__ import annotations

from operator import index
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa.errors import StateError

BITS: Final = 32
"""Tokens in a word: token ``i`` is bit ``i % 32`` of word ``i // 32``."""


def words_for(size: int) -> int:
    """Return the number of words of a mask over ``size`` tokens: ``ceil(size / 32)``."""
    return -(-size // BITS)


def allocate_bitmask(batch: int, vocab_or_size: Any) -> npt.NDArray[np.int32]:
    """Return a new int32[batch, ceil(V/32)] buffer for ``state.fill_bitmask(buffer, row=i)`` and
    ``wfsa.fill_bitmasks``.

    batch: the number of rows.
    vocab_or_size: a :class:`wfsa.Vocab`, or V itself, the width of the model's logits.

    All bits are 1 (each word is -1): every token is allowed, so a row that no state fills restricts nothing, as is
    usual for such buffers. ``torch.from_numpy`` shares its memory with a tensor.

    Raises StateError for a negative batch or a size below 1, TypeError for an argument that is not an integer.
    """
    rows, size = index(batch), index(getattr(vocab_or_size, "logits_size", vocab_or_size))
    if rows < 0 or size < 1:
        raise StateError(f"a bitmask of {rows} rows for {size} tokens; rows must be at least 0, tokens at least 1")
    return np.full((rows, words_for(size)), -1, np.int32)
