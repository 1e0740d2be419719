"""Types of the compiled module; the documentation is in ext/bindings/texts.pyx."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from wfsa._ext.state import State
from wfsa._ext.vocabulary import VocabCore

_S = TypeVar("_S", bound=State)

class TextsCore:
    @property
    def vocab(self) -> VocabCore: ...
    def __init__(
        self,
        vocab: VocabCore,
        blob: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        hub: int,
        hub_tokens: int,
        order: npt.NDArray[np.int64] | None = None,
        n_given: int = 0,
    ) -> None: ...
    @property
    def hub(self) -> int: ...
    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def counts(self) -> dict[str, int]: ...
    def find(self, text: bytes) -> tuple[int, int]: ...
    def grammar_tokens(self) -> frozenset[int]: ...
    def start(self, constraint: Any, stop_token_ids: list[int] | None, kind: type[_S]) -> _S: ...
