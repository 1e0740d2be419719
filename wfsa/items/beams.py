"""The state of a beam search over items, and the rules of its step.

**Step.** For request b with beams m = 0 .. M - 1, nodes n(m) and scores s(m), every allowed token t of a beam that is
valid and not finished is a candidate with the score::

    s(m) + (logits[b, m, t] - norm(m))         in float32, in this order: (s(m) - norm(m)) + logits[b, m, t]

    norm = log-sum-exp over   "full"   all of the logits
                              "level"  the tokens of the node's level, and the end token where the index has one
                              "valid"  the node's allowed tokens (those of the filter, where there is one)
                              "none"   nothing: 0, for logits that are log-probabilities already

The log-sum-exp is computed in any way that is right to float32 rounding, and is a float32.
A finished beam (an item is complete: its node has no continuations) is one candidate that keeps its score.
Candidates with score -inf are none. The M best make the next beams, in this order:

    **Ties.** Higher score first (as float32); then the lower beam number; then the lower token id.

A finished beam's candidate counts as token -1. Missing beams (fewer than M candidates) come last and are flagged:
``valid`` False, node NONE, score -inf, parent 0, token -1, sequence all -1. They are never filled with anything else.
NaN or +inf among the logits that a step reads is an ItemError on the CPU; device back ends take no candidate of such a
beam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, get_args

import numpy as np

from wfsa.errors import ItemError
from wfsa.items.nodes import NONE

Normalise = Literal["full", "level", "valid", "none"]
NORMALISATIONS: Final = get_args(Normalise)


class Rooted(Protocol):
    """An ItemIndex, or one on a device; or a state of a changing catalogue, where a node is int64[2]."""

    @property
    def root(self) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Beams:
    """B requests × M beams after t steps; arrays of NumPy or of the back end that made them.

    nodes      int64[B, M]       NONE where missing; of a changing catalogue int64[B, M, 2]
    scores     float32[B, M]     cumulative; -inf where missing
    valid      bool[B, M]        False where missing
    parents    int32[B, M]       the beam of the step before that this one continues (to reorder a KV cache)
    tokens     int32[B, M]       the token that was taken; -1 for a finished or missing beam
    sequences  int32[B, M, t]    all tokens taken; -1 for steps after an item was finished
    """

    nodes: Any
    scores: Any
    valid: Any
    parents: Any
    tokens: Any
    sequences: Any

    def __repr__(self) -> str:
        many = " x ".join(map(str, getattr(self.nodes, "shape", ())[:2]))
        steps = getattr(self.sequences, "shape", (0,))[-1]
        where = f"arrays of {type(self.nodes).__module__.split('.')[0]}"
        if isinstance(self.valid, np.ndarray):  # else counting would wait for the device
            where = f"{int(np.count_nonzero(self.valid)):,} valid"
        return f"Beams({many} beams after {steps} steps, {where})"

    @staticmethod
    def start(index: Rooted, n_requests: int, width: int) -> Beams:
        """One valid beam a request at the root, the others missing. NumPy arrays."""
        if n_requests < 0 or width < 1:
            raise ItemError(f"{n_requests} requests of {width} beams")
        shape = (n_requests, width)
        nodes = np.full((*shape, *np.shape(index.root)), NONE, np.int64)
        nodes[:, 0] = index.root
        valid = (nodes >= 0).reshape(*shape, -1).any(axis=2)
        scores = np.where(valid, 0.0, -np.inf).astype(np.float32)
        return Beams(
            nodes, scores, valid, np.zeros(shape, np.int32), np.full(shape, -1, np.int32),
            np.zeros((*shape, 0), np.int32),
        )  # fmt: skip


def check_normalise(normalise: str) -> None:
    if normalise not in NORMALISATIONS:
        raise ItemError(f"normalise={normalise!r}; it is one of {', '.join(NORMALISATIONS)}")
