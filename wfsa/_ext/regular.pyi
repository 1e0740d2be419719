"""Types of the compiled module; the documentation is in ext/bindings/regular.pyx."""

from typing import Any

import numpy.typing as npt

from wfsa.grammar.regular import Regular

class Automaton:
    nullable: bool
    @property
    def n_states(self) -> int: ...
    def arrays(self) -> tuple[npt.NDArray[Any], ...]: ...

def automaton(tree: Regular, max_states: int = ...) -> Automaton: ...
def cache_info() -> dict[str, dict[str, int]]: ...
def set_cache_limits(automata: int, names: int) -> None: ...
