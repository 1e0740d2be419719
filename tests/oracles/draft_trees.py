"""The masks of a draft tree, node by node with forks: what ``wfsa.fill_tree`` has to fill, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import wfsa


def fill_tree(
    state: wfsa.State, next: Sequence[int], sibling: Sequence[int], tokens: Sequence[int], rows: np.ndarray
) -> int:
    """Fill int32[n, W] as ``wfsa.fill_tree`` does for one state, and return how many rows that were."""
    n_filled = 0

    def visit(node: int, at: wfsa.State) -> None:
        nonlocal n_filled
        if at.is_finished():
            return
        at.fill_bitmask(rows, row=node)
        n_filled += 1
        child = next[node]
        while child != -1:
            token, after = tokens[child], at.fork()
            if 0 <= token < state.constraint.vocab.n_tokens and after.commit(token):
                visit(child, after)
            child = sibling[child]

    visit(0, state)
    return n_filled
