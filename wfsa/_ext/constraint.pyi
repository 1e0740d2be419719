"""Types of the compiled module; the documentation is in ext/bindings/constraint.pyx."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from wfsa._ext.regular import Automaton
from wfsa._ext.vocabulary import VocabCore

class ConstraintCore:
    vocab: VocabCore
    @property
    def frozen(self) -> bool: ...
    def counts(self) -> dict[str, int]: ...
    def memory(self) -> dict[str, int]: ...
    def parse_tails(self, on: bool) -> None: ...
    def expand(
        self, progress: Callable[[str, float], None] | None = ..., deadline: Callable[[], None] | None = ...
    ) -> bool: ...
    def to_arrays(self) -> dict[str, npt.NDArray[np.int32]]: ...
    @staticmethod
    def from_arrays(vocab: VocabCore, arrays: dict[str, npt.NDArray[Any]]) -> ConstraintCore: ...

def build_core(
    vocab: VocabCore,
    automata: list[Automaton | None],
    token_ids: list[list[int]],
    ranks: list[int],
    ignore: Iterable[int],
    rules: Iterable[tuple[int, tuple[int, ...]]],
    n_nonterms: int,
    start: int,
    longest: bool,
    max_lr_states: int,
    max_lexer_states: int,
    units: list[tuple[int, int | None] | None],
    unordered: Iterable[Any],
    distinct: Iterable[tuple[int, bool]],
) -> ConstraintCore | None: ...
