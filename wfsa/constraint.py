"""The compiled constraint: immutable, shared by threads, bound to one vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wfsa._ext.engine import ConstraintCore, State

if TYPE_CHECKING:
    from wfsa.vocab import Vocab


class Constraint:
    """What may be written.  ``start()`` gives a :class:`State` for one sequence.

    Attributes: ``vocab``; ``terminal_names`` and ``terminal_origins`` (for messages); ``report``; ``stats``.
    """

    __slots__ = ("_core", "report", "stats", "terminal_names", "terminal_origins", "vocab")

    def __init__(
        self,
        core: ConstraintCore,
        vocab: Vocab,
        terminal_names: tuple[str, ...],
        terminal_origins: tuple[str, ...],
        stats: dict[str, Any],
        report: Any = None,
    ) -> None:
        self._core = core
        self.vocab = vocab
        self.terminal_names = terminal_names
        self.terminal_origins = terminal_origins
        self.stats = stats
        self.report = report

    def start(self) -> State:
        """A state before the first token."""
        state = self._core.start()
        state.constraint = self
        return state
