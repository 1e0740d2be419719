"""Made catalogues for the item benches: uniform, Zipf and clustered codes, by blocks, the same for the same seed."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

KINDS: Final = ("uniform", "zipf", "clustered")
_BLOCK: Final = 1 << 20


def rows(kind: str, n: int, n_levels: int, size: int, seed: int = 0) -> npt.NDArray[np.int32]:
    """int32[n, n_levels], codes below ``size``.

    uniform    every code alike
    zipf       at each level code c has weight 1 / (c + 1), levels independent: hubs under hubs
    clustered  n / 100 centres, uniform; an item is a centre with its last 3 codes drawn anew
    """
    rng = np.random.default_rng(seed)
    out = np.empty((n, n_levels), np.int32)
    weights = np.cumsum(1 / np.arange(1, size + 1))
    centres = rng.integers(0, size, (max(n // 100, 1), n_levels), dtype=np.int32)
    for begin in range(0, n, _BLOCK):
        part = out[begin : begin + _BLOCK]
        if kind == "zipf":
            part[:] = np.searchsorted(weights, rng.random(part.shape) * weights[-1]).clip(0, size - 1)
        elif kind == "uniform":
            part[:] = rng.integers(0, size, part.shape, dtype=np.int32)
        elif kind == "clustered":
            part[:] = centres[rng.integers(0, len(centres), len(part))]
            part[:, -3:] = rng.integers(0, size, (len(part), min(3, n_levels)), dtype=np.int32)
        else:
            raise ValueError(kind)
    return out
