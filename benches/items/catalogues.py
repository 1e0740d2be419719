"""Makes catalogues for the item benches, block by block; the same seed gives the same catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

KINDS: Final = ("uniform", "zipf", "clustered")
_BLOCK: Final = 1 << 20


def code_dtype(size: int) -> np.dtype[Any]:
    """Return the narrowest type for codes below ``size``: uint16 or int32."""
    return np.dtype(np.uint16 if size <= 1 << 16 else np.int32)


def rows(kind: str, n: int, n_levels: int, size: int, seed: int = 0, dtype: Any = np.int32) -> npt.NDArray[Any]:
    """Return dtype[n, n_levels] with codes below ``size``, which do not depend on the dtype.

    uniform    every code is equally likely
    zipf       at each level code c has weight 1 / (c + 1), independently of other levels, so hubs are below hubs
    clustered  n / 100 uniform centres; an item is a centre with its last 3 codes drawn anew
    """
    rng = np.random.default_rng(seed)
    out = np.empty((n, n_levels), dtype)
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


def branching_rows(
    n: int, n_levels: int, size: int, level: int, children: int, seed: int = 0, dtype: Any = np.int32
) -> npt.NDArray[Any]:
    """Return dtype[m, n_levels] in which every node of ``level`` has ``children`` children with one item below each.

    m is n rounded up to a multiple of ``children``, so there are ``m / children`` nodes. ``size`` is a power of two.
    The prefix of node j is the number ``j * odd mod size ** level`` in base ``size``. The codes of its children are
    ``(first + i * stride) mod size``, with an odd stride per node. Both give different values for different j or i.
    """
    if size & (size - 1) or not 0 <= level < n_levels or not 1 <= children <= size:
        raise ValueError(f"{children} children at level {level} of {n_levels}, {size} codes")
    n_nodes = -(-n // children)
    if level * (size.bit_length() - 1) < 62 and n_nodes > size**level:
        raise ValueError(f"{n_nodes} nodes at level {level}, {size} codes")
    rng = np.random.default_rng(seed)
    out = np.empty((n_nodes * children, n_levels), dtype)
    number = np.arange(n_nodes, dtype=np.int64) * ((int(rng.integers(1 << 20)) << 1) | 1)
    for at in reversed(range(level)):
        number, code = number // size, number % size
        out[:, at] = np.repeat(code, children)
    first, stride = rng.integers(0, size, n_nodes), rng.integers(0, size, n_nodes) | 1
    step = np.arange(children)
    for begin in range(0, n_nodes, max(_BLOCK // children, 1)):
        end = min(begin + max(_BLOCK // children, 1), n_nodes)
        codes = (first[begin:end, None] + step * stride[begin:end, None]) % size
        out[begin * children : end * children, level] = codes.reshape(-1)
    out[:, level + 1 :] = rng.integers(0, size, (len(out), n_levels - level - 1), dtype=np.int32)
    return out[rng.permutation(len(out))]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """One catalogue of a sweep, and the step that is timed in it.

    sweep     the number that the sweep varies: "items", "codes" or "children"
    kind      one of KINDS, or "branching": every node at the step's level has ``children`` children
    items, levels, codes     |C|, L, V
    level     level of the beams' nodes, from 0
    children  children per node with kind "branching", else 0
    shapes    "BxM": requests x beams
    """

    sweep: str
    kind: str
    items: int
    levels: int
    codes: int
    level: int
    children: int
    shapes: tuple[str, ...]

    def rows(self) -> npt.NDArray[Any]:
        dtype = code_dtype(self.codes)
        if self.kind == "branching":
            return branching_rows(self.items, self.levels, self.codes, self.level, self.children, dtype=dtype)
        return rows(self.kind, self.items, self.levels, self.codes, dtype=dtype)

    def __str__(self) -> str:
        below = f", {self.children:,} children" if self.children else ""
        return f"{self.kind} |C| = {self.items:,}, V = {self.codes:,}{below}"
