"""Types of the compiled module; the documentation is in ext/bindings/drafts.pyx."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from wfsa._ext.state import State

def fill_drafts(
    states: Sequence[State | None], limits: Sequence[int], *,
    prompts: Sequence[Sequence[int] | npt.NDArray[Any] | None] | None = None,
    proposals: Sequence[Sequence[int] | npt.NDArray[Any] | None] | None = None,
    end_token_ids: Sequence[int | None] | None = None, threads: int = 1,
) -> list[list[int]]: ...
@overload
def fill_draft_tree(
    states: State, next: Any, sibling: Any, tokens: Any, buffer: Any, threads: int = 1,
    max_tokens: int | None = None, wrap_up: int = 0,
) -> int: ...
@overload
def fill_draft_tree(
    states: Sequence[State | None], next: Any, sibling: Any, tokens: Any, buffer: Any, threads: int = 1,
    max_tokens: Sequence[int | None] | None = None, wrap_up: int = 0,
) -> npt.NDArray[np.int64]: ...
@overload
def fill_draft_chain(
    states: State, tokens: Any, buffer: Any, threads: int = 1, max_tokens: int | None = None, wrap_up: int = 0
) -> int: ...
@overload
def fill_draft_chain(
    states: Sequence[State | None], tokens: Any, buffer: Any, threads: int = 1,
    max_tokens: Sequence[int | None] | None = None, wrap_up: int = 0,
) -> npt.NDArray[np.int64]: ...
def draft(state: State, limit: int, prompt: Any, proposal: Any, end_token_id: int | None) -> list[int]: ...
def draft_tree(state: State, limit: int, end_token_id: int | None) -> tuple[list[int], list[int]]: ...
def crossings(state: State, forced: bytes) -> list[int]: ...
