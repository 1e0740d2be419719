"""Packed bits: bit ``i % 32`` of word ``i // 32``, with words as int32, like all masks of the package."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_ONES: Final = np.asarray([byte.bit_count() for byte in range(256)], np.uint8)


def pack_bits(present: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Pack bool[..., 32 * W] into int32[..., W]."""
    return np.packbits(present, axis=-1, bitorder="little").view("<i4").astype(np.int32, copy=False)


def popcount(words: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Count the set bits of each word of int32 or uint32."""
    flat = np.ascontiguousarray(words)
    per_byte = _ONES[flat.reshape(-1).view(np.uint8)].reshape(*flat.shape, 4)
    return np.asarray(per_byte.sum(axis=-1, dtype=np.int64))


def ranks(words: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Count the set bits before each word."""
    counts = popcount(words)
    return np.cumsum(counts) - counts
