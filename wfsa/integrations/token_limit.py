"""How many tokens a server's request leaves its text, and masks that keep the text within them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from wfsa._ext.state import State
from wfsa.errors import BudgetError, StateError

_LOG = logging.getLogger("wfsa")


class TokenLimit:
    """Of one request.  Without a limit there is no budget, nor where the text does not fit, as the log says."""

    __slots__ = ("_end", "_fits")

    def __init__(self) -> None:
        self._end: int | None = None
        self._fits: bool | None = None  # None: not asked yet

    def set(self, left: int, state: State) -> None:
        """So many tokens may come from here on, the end token among them."""
        self._end = left + state.n_commits

    def budget(self, state: State) -> int | None:
        """What is left for the text where it stands."""
        if self._end is None or state.is_finished():
            return None
        left = self._end - state.n_commits
        if self._fits is None:
            try:
                needed = state.min_tokens()
                self._fits = needed <= left
                if not self._fits:
                    _LOG.warning("max_tokens leaves %d tokens, and the text needs %d: it may be cut off", left, needed)
            except StateError:  # it is not known how many it needs
                self._fits = False
        return left if self._fits else None

    def validate(self, state: State, drafts: Sequence[int]) -> int:
        """How many of these tokens, which are allowed, the text can take one after the other and still fit."""
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
    states: Sequence[State], budgets: list[int | None], fill: Callable[[list[int | None]], object]
) -> None:
    """Call `fill` with these budgets; with none for a state that was led past its masks, which needs more by now.

    So is one behind a draft that its mask refuses: its row is not looked at.
    """
    try:
        fill(budgets)
    except BudgetError:
        fits = [left is None or state.min_tokens() <= left for state, left in zip(states, budgets, strict=True)]
        fill([left if fit else None for left, fit in zip(budgets, fits, strict=True)])
