"""One thin adapter for each engine, and what the worker asks of them.

An adapter returns *bound calls*: `filler(state, buffer)` gives a callable that fills `buffer`, and the clock runs round
that callable. So no frame of ours is between the clock and the engine; at half a microsecond a mask, one Python call
would be a fifth of the number.

An engine gets its source in the form it likes best (`prepare`, not timed): a dict for those that take dicts, text for
those that parse JSON themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benches.jobs import Kind
from benches.recorded_data import Vocabulary

Buffer = npt.NDArray[np.int32]


class Refused(Exception):
    """The engine says that it cannot compile this."""


class Engine(Protocol):
    name: str

    def __init__(self, vocabulary: Vocabulary) -> None: ...

    def prepare(self, kind: Kind, source: Any) -> Any:
        """What `compile` takes; raises Refused for a kind that the engine has no front end for."""

    def compile(self, kind: Kind, prepared: Any) -> Any:
        """Raises whatever the engine raises when it refuses."""

    def starter(self, compiled: Any) -> Callable[[], Any]: ...

    def forker(self, state: Any) -> Callable[[], Any]: ...

    def filler(self, state: Any, buffer: Buffer) -> Callable[[], Any]: ...

    def committer(self, state: Any) -> Callable[[int], Any]: ...

    def may_end(self, state: Any, buffer: Buffer) -> bool:
        """Is the text a sentence now?"""


class Persistent(Protocol):
    """An engine whose compiled constraints can be kept."""

    def save(self, compiled: Any, path: Path) -> None: ...

    def load(self, path: Path) -> Any: ...


def has_bit(buffer: Buffer, token_id: int) -> bool:
    return bool(int(buffer[token_id >> 5]) >> (token_id & 31) & 1)


#: name on the command line and in tables -> module and class
ENGINES = {
    "wfsa": ("benches.engines.wfsa_engine", "WfsaAhead"),
    "wfsa-lazy": ("benches.engines.wfsa_engine", "WfsaLazy"),
    "wfsa-background": ("benches.engines.wfsa_engine", "WfsaBackground"),
    "wfsa-any-order": ("benches.engines.wfsa_engine", "WfsaAnyOrder"),
    "llguidance": ("benches.engines.llguidance_engine", "LLGuidance"),
    "glrmask": ("benches.engines.glrmask_engine", "GLRMask"),
    "xgrammar": ("benches.engines.xgrammar_engine", "XGrammar"),
}

#: the packages whose versions a result names
PACKAGES = ("wfsa", "llguidance", "glrmask", "xgrammar", "torch", "tiktoken", "numpy")


def build(name: str, vocabulary: Vocabulary) -> Engine:
    """Import the adapter of `name`, and with it the engine, and give it the vocabulary."""
    module, attribute = ENGINES[name]
    engine: Engine = getattr(import_module(module), attribute)(vocabulary)
    return engine
