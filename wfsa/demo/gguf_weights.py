"""Reads the tensors of a GGUF file as float32.

**Layouts.** A row is cut into blocks of 32 numbers. A block is its scale ``d`` (float16), in some layouts a minimum
``m`` (float16), and the numbers in few bits. With 4 bits, byte ``i`` has number ``i`` in its low half and ``i + 16`` in
its high half::

    Q8_0   d | 32 × int8          number = d * q
    Q4_0   d | 16 bytes           number = d * (q - 8)
    Q4_1   d | m | 16 bytes       number = d * q + m

F32 and F16 are plain. The package ``gguf`` reads other types, if it is installed.

**Cost.** Four bytes are written for half a byte read: a pass to split the halves, one to scale, one to add, each over a
whole tensor and in place. 135 million numbers take 0.9 s of one core. The package ``gguf``, which works in pieces of 16
rows, takes 3.3 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from wfsa.errors import WfsaError
from wfsa.vocab.gguf_metadata import TensorPlace

Floats: TypeAlias = npt.NDArray[np.float32]
Bytes: TypeAlias = npt.NDArray[np.uint8]

_BLOCK: Final = 32


class ModelError(WfsaError):
    """A model file that is missing, damaged, or of a kind that the demo does not run."""


def read_tensor(data: Bytes, place: TensorPlace, out: Floats, where: str) -> None:
    """Reads the tensor at ``place`` of the file's bytes into ``out``, contiguous float32 of the tensor's shape."""
    layout = _LAYOUTS.get(place.kind)
    if layout is None:
        _read_by_gguf(data, place, out, where)
        return
    n_bytes = math.prod(place.shape) // layout.numbers * layout.dtype.itemsize
    if place.shape[-1] % layout.numbers:
        raise ModelError(f"{where}: rows of {place.shape[-1]} numbers are not cut into blocks of {layout.numbers}")
    blocks = _part(data, place, n_bytes, where).view(layout.dtype)
    layout.read(blocks, out.reshape(len(blocks), layout.numbers))


def _part(data: Bytes, place: TensorPlace, n_bytes: int, where: str) -> Bytes:
    stop = place.offset + n_bytes
    if stop > len(data):
        raise ModelError(f"{where}: truncated: it ends at byte {stop} of {len(data)}")
    return data[place.offset : stop]


def _read_plain(blocks: npt.NDArray[Any], out: Floats) -> None:
    out[:, 0] = blocks


def _read_8_bits(blocks: npt.NDArray[Any], out: Floats) -> None:
    np.multiply(blocks["q"], blocks["d"].astype(np.float32)[:, None], out=out)


def _read_4_bits(blocks: npt.NDArray[Any], out: Floats) -> None:
    packed, scale = blocks["q"], blocks["d"].astype(np.float32)[:, None]
    halves = out.reshape(-1, 2, _BLOCK // 2)
    np.multiply(packed & 15, scale, out=halves[:, 0])
    np.multiply(packed >> 4, scale, out=halves[:, 1])
    least = -8 * scale if "m" not in (blocks.dtype.names or ()) else blocks["m"].astype(np.float32)[:, None]
    out += least


@dataclass(frozen=True, slots=True)
class _Layout:
    numbers: int  # count of numbers in a block
    dtype: np.dtype[Any]  # the type of a block
    read: Callable[[npt.NDArray[Any], Floats], None]


_LAYOUTS: Final = {  # keys: GGML's numbers of types
    0: _Layout(1, np.dtype("<f4"), _read_plain),
    1: _Layout(1, np.dtype("<f2"), _read_plain),
    2: _Layout(_BLOCK, np.dtype([("d", "<f2"), ("q", "u1", 16)]), _read_4_bits),
    3: _Layout(_BLOCK, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)]), _read_4_bits),
    8: _Layout(_BLOCK, np.dtype([("d", "<f2"), ("q", "i1", 32)]), _read_8_bits),
}


def _read_by_gguf(data: Bytes, place: TensorPlace, out: Floats, where: str) -> None:
    try:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize
    except ImportError as error:
        raise ModelError(f"{where}: reading its type ({place.kind}) needs `pip install gguf`") from error
    try:
        kind = GGMLQuantizationType(place.kind)
        block, n_bytes = GGML_QUANT_SIZES[kind]
        rows = (*place.shape[:-1], place.shape[-1] // block * n_bytes)
        out[...] = dequantize(np.asarray(_part(data, place, math.prod(rows), where)).reshape(rows), kind)
    except (ValueError, NotImplementedError) as error:
        raise ModelError(f"{where}: type {place.kind} cannot be read: {error}") from error
