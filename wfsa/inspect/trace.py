"""A text token by token under a constraint: how many tokens could have come, what masks and commits took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from wfsa._ext.state import State
from wfsa.constraint import Constraint
from wfsa.errors import StateError


def trace(constraint: Constraint, ids: Iterable[int]) -> Iterator[dict[str, Any]]:
    """A step for each token that is committed, and last how it ends; masks are timed behind one that is not.

    `offset` is that of the first byte that is refused.
    """
    state = constraint.start()
    offset = 0
    refused: dict[str, Any] = {}
    n = 0
    for token in ids:
        state.fork().get_mask()  # what is made on first use is made
        begin = time.perf_counter()
        mask = state.get_mask()
        mask_seconds = time.perf_counter() - begin
        known = 0 <= token < constraint.vocab.n_tokens
        if not known or token not in mask:
            offset += _taken(state, constraint.vocab.tokens[token]) if known else 0
            refused = {"refused": token, "offset": offset, "because": state.explain(token)}
            break
        begin = time.perf_counter()
        state.commit(token)
        spelled = constraint.vocab.tokens[token]
        yield {
            "token": token, "text": spelled.decode("utf-8", "backslashreplace"),
            "choices": len(mask), "forced": len(mask) == 1, "mask_us": 1e6 * mask_seconds,
            "commit_us": 1e6 * (time.perf_counter() - begin), "tokens_to_end": _left(state),
        }  # fmt: skip
        offset += len(spelled)
        n += 1
    accepted = not refused and (state.is_finished() or state.is_accepting())
    yield {"accepted": accepted, "tokens": n, **refused}


def _taken(state: State, token: bytes) -> int:
    """Bytes of a refused token that could have been written; none of one that is refused for what it is."""
    state = state.fork()
    n = next((i for i in range(len(token)) if not state.commit_bytes(token[i : i + 1])), len(token))
    return n if n < len(token) else 0


def _left(state: State) -> int | None:
    try:
        return int(state.min_tokens())
    except StateError:  # it is not known under this policy
        return None
