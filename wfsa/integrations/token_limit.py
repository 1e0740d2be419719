"""Budgets from a request's ``max_tokens``: masks that complete the text before the server cuts it off."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from wfsa._ext.state import State
from wfsa.errors import BudgetError, StateError

_LOG = logging.getLogger("wfsa")


class TokenLimit:
    """The token limit of one request.

    There is no budget before `set`. A text that cannot fit has no budget either; the log reports this.
    """

    __slots__ = ("_end", "_fits")

    def __init__(self) -> None:
        self._end: int | None = None
        self._fits: bool | None = None  # None: not checked yet

    def set(self, left: int, state: State) -> None:
        """Sets the number of tokens that may still follow `state`, including the end token."""
        self._end = left + state.n_commits

    def budget(self, state: State) -> int | None:
        """Returns the number of tokens left at `state`, or None if there is no budget."""
        if self._end is None or state.is_finished():
            return None
        left = self._end - state.n_commits
        if self._fits is None:
            try:
                needed = state.min_tokens()
                self._fits = needed <= left
                if not self._fits:
                    _LOG.warning("max_tokens leaves %d tokens, and the text needs %d: it may be cut off", left, needed)
            except StateError:  # this constraint does not know how many tokens its texts need
                self._fits = False
        return left if self._fits else None

    def validate(self, state: State, drafts: Sequence[int]) -> int:
        """Returns how many of `drafts`, which are allowed in this order, leave a text that still fits."""
        if self.budget(state) is None:
            return len(drafts)
        probe = state.fork()
        for k, token in enumerate(drafts):
            probe.commit(token)
            left = self.budget(probe)
            if left is not None and probe.min_tokens() > left:
                return k
        return len(drafts)


def fill_within(
    states: Sequence[State | None], budgets: list[int | None], fill: Callable[[list[int | None]], object]
) -> None:
    """Calls `fill` with the budgets; if one is too small for its state, without a budget for each such state.

    A state needs more than its budget after tokens that its mask did not allow, for example refused drafts, whose rows
    the server does not read.
    """
    try:
        fill(budgets)
    except BudgetError:
        fits = [
            state is None or left is None or state.min_tokens() <= left
            for state, left in zip(states, budgets, strict=True)
        ]
        fill([left if fit else None for left, fit in zip(budgets, fits, strict=True)])
