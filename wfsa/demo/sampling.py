"""Choosing a token under a mask: temperature, a nucleus, and a way to end.

**Temperature and nucleus.** Among the allowed tokens only, softmax of ``logits / temperature``; the least likely
tokens beyond a cumulative probability of ``top_p`` are dropped. ``temperature = 0`` is the most likely token. The
random numbers come from a generator that the caller seeds.

**Ending.** A mask keeps a text valid, it does not make a model stop: a small one can go on adding to an unbounded
string. Past its budget the demo therefore prefers, among the allowed tokens, those that close something
(:func:`closing_scores`); the model chooses only among the best of these. Every open string, array and object then
ends as soon as its schema permits. The end token ranks above all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

_CLOSERS: Final = b'"}]'


def closing_scores(tokens: Iterable[bytes], eos_ids: Sequence[int]) -> npt.NDArray[np.int8]:
    """How much a token ends things: 3 ends the text, 2 begins with a closer and has nothing but closers, 1 begins with
    one, 0 is neither."""
    scores = np.array([_closing_score(token) for token in tokens], np.int8)
    scores[list(eos_ids)] = 3
    return scores


def _closing_score(token: bytes) -> int:
    if not token or token[0] not in _CLOSERS:
        return 0
    return 2 if all(byte in _CLOSERS for byte in token) else 1


def choose(
    logits: npt.NDArray[np.float32],
    allowed: npt.NDArray[np.int32] | None,
    temperature: float,
    top_p: float,
    generator: np.random.Generator,
) -> int:
    """One of the ``allowed`` ids (None: of all)."""
    ids = np.arange(len(logits), dtype=np.int32) if allowed is None else allowed
    if len(ids) == 1:
        return int(ids[0])
    scores = logits[ids].astype(np.float64)
    if temperature <= 0:
        return int(ids[int(scores.argmax())])
    weights = np.exp((scores - scores.max()) / temperature)
    weights /= weights.sum()
    order = np.argsort(-weights, kind="stable")
    # Keep the shortest run of likeliest tokens whose sum reaches top_p.
    kept = order[: int(np.searchsorted(np.cumsum(weights[order]), top_p)) + 1]
    chosen = generator.choice(kept, p=weights[kept] / weights[kept].sum())
    return int(ids[chosen])
