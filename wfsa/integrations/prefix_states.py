"""States by the tokens that lead to them, for decoding loops that say what was written and not what was done.

**Problem.** A host calls with rows of tokens. Between two calls rows may have been reordered (beams), repeated, taken
back (drafts that were refused) or have ended; it does not tell which.

**Method.** A state depends on its constraint and its tokens alone, so it is looked up by these: the last step's row,
whatever its number was, is the longest prefix of this step's, and a fork of its state takes the tokens that are new.
What was looked up last is kept, up to a bound; what has been dropped is committed again from a shorter prefix.

**Cost.** One fork, one commit and the hash of four bytes a token for a row that has grown by a token. Where no prefix
is kept, as many look-ups as the row has tokens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wfsa._ext.state import State

_BYTES = 4  # of a token in a key


class PrefixStates:
    """The states of rows under some constraints.

    starts: a state before the first token for each constraint, None for a row without one.
    capacity: how many states are kept beside these.
    """

    def __init__(self, starts: Sequence[State | None], capacity: int) -> None:
        self.starts = list(starts)
        self.capacity = capacity
        self._kept: OrderedDict[tuple[int, bytes], State | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Forget all but the starts."""
        self._kept.clear()

    def after(self, which: int, tokens: npt.NDArray[np.int32]) -> State | None:
        """The state of constraint `which` after int32[n] tokens, not to be changed; None where one is not allowed.

        What stands behind an end token is padding, and the state stays the finished one.
        """
        start = self.starts[which]
        if start is None:
            raise ValueError(f"row of constraint {which}, which is none")
        key = tokens.tobytes()
        if not key:
            return start
        found, n_known = self._longest(which, key, start)
        if n_known < len(tokens) and found is not None and not found.is_finished():
            found = _committed(found, tokens[n_known:])
        self._kept[which, key] = found
        self._kept.move_to_end((which, key))
        while len(self._kept) > self.capacity:
            self._kept.popitem(last=False)
        return found

    def _longest(self, which: int, key: bytes, start: State) -> tuple[State | None, int]:
        """The state of the longest prefix that is kept, and how many tokens that has."""
        for end in range(len(key), 0, -_BYTES):
            prefix = (which, key[:end])
            if prefix in self._kept:
                return self._kept[prefix], end // _BYTES
        return start, 0


def _committed(state: State, tokens: npt.NDArray[np.int32]) -> State | None:
    after = state.fork()
    n = after.commit_tokens(tokens)
    return after if n == len(tokens) or after.is_finished() else None
