"""Random rows as programs show them to a door, and the slow twin: every row replayed by commits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import wfsa


class Row(NamedTuple):
    prompt: list[int]
    written: list[int]

    @property
    def tokens(self) -> list[int]:
        return [*self.prompt, *self.written]


def allowed_after(
    constraint: wfsa.Constraint, written: list[int], stop_token_ids: list[int] | None = None
) -> list[int]:
    """What may follow, ascending; the end tokens behind the end."""
    state = constraint.start(stop_token_ids=stop_token_ids)
    for token in written:
        if state.is_finished():
            break
        assert state.commit(token)
    return list(state.stop_token_ids) if state.is_finished() else state.get_mask().ids().tolist()


def masked(scores: npt.NDArray[np.float32], allowed: list[int]) -> npt.NDArray[np.float32]:
    """float32[V]: -inf but for these."""
    out = np.full_like(scores, -np.inf)
    out[allowed] = scores[allowed]
    return out


def rows_in_turn(constraint: wfsa.Constraint, choose: random.Random, prompts: list[list[int]], n: int) -> Iterator[Row]:
    """`n` rows of several texts in turn: they grow by allowed tokens, lose tokens again, and fork.

    Every row is one that was shown before, or one token longer than one. The caller may not change them.
    """
    rows = [Row(prompt, []) for prompt in prompts for _ in range(choose.choice([1, 1, 2]))]
    yield from rows
    for _ in range(n):
        at = choose.randrange(len(rows))
        prompt, written = rows[at]
        what = choose.random()
        if what < 0.15:  # drafts that are refused, or a text that begins again
            written = written[: choose.randrange(len(written) + 1)]
        elif what < 0.25:  # a beam that takes another's place
            same = [row for row in rows if row.prompt == prompt]
            written = list(choose.choice(same).written)
        else:
            allowed = allowed_after(constraint, written)
            ends = [token for token in allowed if token in constraint.vocab.eos_token_ids]
            take_end = ends and choose.random() < 0.2
            written = [*written, choose.choice(ends if take_end else allowed)]
        rows[at] = Row(prompt, written)
        yield rows[at]
