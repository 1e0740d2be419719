"""What the demo's small model would write next: the probabilities beside the allowed tokens.

The model is read when it is first asked for, and keeps what it has read of the text: going on costs a step a token.
Of a long text it sees the end. It has no prompt, so what it says is what such a text usually goes on with.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_MOST: Final = 512  # tokens that it sees
_KEPT: Final = 384  # of a longer text


class SmallModel:
    """Several threads may ask; they wait for each other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._model: Any = None
        self._read: list[int] = []
        self._logits: npt.NDArray[np.float32] | None = None
        self._lock = threading.Lock()

    def probabilities(self, ids: Sequence[int], start: int) -> npt.NDArray[np.float32]:
        """Of every token, behind `ids`; `start` stands before a text."""
        wanted = [start, *(ids if len(ids) < _MOST else ids[-_KEPT - len(ids) % (_MOST - _KEPT) :])]
        with self._lock:
            if self._model is None:
                from wfsa.demo.gguf_model import GgufModel

                self._model = GgufModel(self.path)
            if wanted != self._read or self._logits is None:
                same = 0
                while same < min(len(wanted) - 1, len(self._read)) and wanted[same] == self._read[same]:
                    same += 1
                self._model.n_past = same  # keys and values behind it are written anew
                self._read = wanted
                self._logits = self._model.forward(wanted[same:])
            logits = np.asarray(self._logits, np.float64)
        weights = np.exp(logits - logits.max())
        out: npt.NDArray[np.float32] = (weights / weights.sum()).astype(np.float32)
        return out
