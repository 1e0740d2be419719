"""The compiled constraint: immutable, shared by threads, bound to one vocabulary."""

from __future__ import annotations

import os
from operator import index
from typing import TYPE_CHECKING, Any

from wfsa._ext.constraint import ConstraintCore
from wfsa._ext.state import State
from wfsa._ext.state import start as start_state

if TYPE_CHECKING:
    from wfsa.grammar.json_schema import SchemaSource
    from wfsa.vocab import Vocab


class Constraint:
    """What may be written.  ``start()`` gives a :class:`State` for one sequence.

    Attributes: ``vocab``; ``terminal_names``, ``terminal_origins`` and ``source``, the schema if it is made from one
    (for messages); ``report``; ``stats``.
    """

    __slots__ = ("_core", "report", "source", "stats", "terminal_names", "terminal_origins", "vocab")

    def __init__(
        self,
        core: ConstraintCore,
        vocab: Vocab,
        terminal_names: tuple[str, ...],
        terminal_origins: tuple[str, ...],
        stats: dict[str, Any],
        report: Any = None,
        source: SchemaSource | None = None,
    ) -> None:
        self._core = core
        self.vocab = vocab
        self.terminal_names = terminal_names
        self.terminal_origins = terminal_origins
        self.stats = stats
        self.report = report
        self.source = source

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an artifact that :func:`wfsa.load` reads; see wfsa/storage/constraint_file.py."""
        from wfsa.storage.constraint_file import save

        save(self, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """By its artifact, and its vocabulary by the vocabulary's own pickle: once for all that one pickle holds."""
        from wfsa.storage.constraint_file import from_bytes, to_bytes

        return from_bytes, (to_bytes(self), self.vocab)

    def memory(self) -> dict[str, int]:
        """Bytes by part, and their ``total``.

        What equal constraints share is not in it: see :meth:`wfsa.Vocab.cache_info`.
        """
        return self._core.memory()

    def report_entries(self) -> Any:
        """The report as JSON-like data, for the artifact; None if the front end made none."""
        return None if self.report is None else [list(entry) for entry in self.report]

    def stack_depth(self) -> int | None:
        """How many parser states, from the top of the stack, decide a mask; None if no number is enough.

        Counts what has been compiled so far: the longest way through the parser DWA.  None too under "longest", where
        whole stacks are moved.
        """
        tables = self._core.to_arrays()
        if tables["head"][3]:
            return None
        after: dict[int, set[int]] = {}
        for source, target in zip(tables["dwa_from"].tolist(), tables["dwa_next"].tolist(), strict=True):
            after.setdefault(source, set()).add(target)
        depth: dict[int, int] = {-1: 0}  # of finished states; -1 is the end of the reading
        path: list[tuple[int, list[int]]] = []
        on_path: set[int] = set()
        for start in after:
            if start not in depth:
                path.append((start, list(after[start])))
                on_path.add(start)
            while path:
                state, left = path[-1]
                if left:
                    to = left.pop()
                    if to in on_path:
                        return None
                    if to not in depth:
                        path.append((to, list(after.get(to, ()))))
                        on_path.add(to)
                    continue
                depth[state] = 1 + max((depth[to] for to in after.get(state, ())), default=0)
                on_path.discard(state)
                path.pop()
        return max(depth.values())

    def explain(self, state: State, token_id: int) -> str:
        """Why `token_id` is allowed or refused in `state`, in one line.

        A constraint from a JSON Schema names the keywords that refuse it, each with its JSON pointer, where that is
        what refuses it; any other, and a text that is no JSON, the terminals that may come next.
        """
        token_id = index(token_id)  # TypeError when it is no integer
        if not 0 <= token_id < self.vocab.n_tokens:
            return f"token id {token_id} is out of range: the vocabulary has {self.vocab.n_tokens} tokens"
        data = self.vocab.tokens[token_id]
        named = f"token {token_id} {data!r}"
        if state.is_finished():
            return f"{named} is refused: the text has ended"
        if token_id in state.get_mask():
            return f"{named} is allowed"
        is_end = token_id in self.vocab.eos_ids
        if not is_end and token_id in self.vocab.special_ids:
            return f"{named} is refused: a special token is not text; expected {self._expected(state)}"
        probe, good = state.fork(), 0
        while not is_end and good < len(data) and probe.commit_bytes(data[good : good + 1]):
            good += 1
        bad = b"" if is_end else data[good : good + 1]
        reasons = self._reasons(probe.text(), bad)
        after = f" after {data[:good]!r}" if good else ""
        if is_end:
            return f"{named} is refused: the text cannot end here; {reasons or f'expected {self._expected(probe)}'}"
        if reasons:
            return f"{named} is refused: {bad!r} cannot follow{after}; {reasons}"
        return f"{named} is refused: {bad!r} cannot follow{after}; expected {self._expected(probe)}"

    def _expected(self, state: State) -> str:
        return ", ".join(self.describe(t) for t in state.expected_terminals()[:8]) or "nothing"

    def _reasons(self, text: bytes, byte: bytes) -> str:
        if self.source is None:
            return ""
        from wfsa.explain import reasons

        return "; ".join(reasons(self.source, text, byte))

    def describe(self, terminal: int) -> str:
        """A terminal's name and where it comes from; the number past the last one stands for the end of the text."""
        if terminal >= len(self.terminal_names):
            return "the end of the text"
        origin = self.terminal_origins[terminal]
        return f"{self.terminal_names[terminal]} ({origin})" if origin else self.terminal_names[terminal]

    def start(self) -> State:
        """A state before the first token."""
        state = start_state(self._core)
        state.constraint = self
        return state
