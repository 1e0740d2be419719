"""What doors to serving engines share: settings of a service, constraints compiled once, a tokenizer's vocabulary."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import wfsa
from wfsa.errors import StateError
from wfsa.requests import compile_kind


@dataclass(frozen=True, slots=True)
class Settings:
    """What a service may choose.

    schema_options: fields of :class:`wfsa.SchemaOptions`, as ``{"whitespace": "compact"}``.
    max_seconds, max_memory: of one compilation, which really ends there; seconds, and bytes.
    kept: constraints that are kept for the next request, least recently used first out.
    threads: that fill the masks of a step.
    within_max_tokens: are texts kept within the request's ``max_tokens``, where that is known (docs/budgets.md)?
    wrap_up: fewer than so many tokens before what is needed then, nothing begins that need not be there.
    """

    schema_options: dict[str, Any] = field(default_factory=dict)
    max_seconds: float = 10.0
    max_memory: int | None = 1 << 30
    kept: int = 256
    threads: int = 1
    within_max_tokens: bool = True
    wrap_up: int = 0

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str) -> Settings:
        """Settings by name; ValueError, with `where` they stand, for a name that there is not."""
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ValueError(f"{where} has no field {unknown[0]!r}; it has {', '.join(known)}")
        return cls(**given)


class Constraints:
    """Compiled once for each request text, and kept; shared by the threads that compile."""

    def __init__(self, vocab: wfsa.Vocab, settings: Settings) -> None:
        self.vocab, self.settings = vocab, settings
        self._options = wfsa.SchemaOptions(**settings.schema_options)
        self._kept: OrderedDict[tuple[str, str], wfsa.Constraint] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, kind: str, text: str) -> wfsa.Constraint:
        """The constraint of a request; raises what compiling raises."""
        with self._lock:
            found = self._kept.get((kind, text))
            if found is not None:
                self._kept.move_to_end((kind, text))
                return found
        limits: dict[str, Any] = {"max_seconds": self.settings.max_seconds, "max_memory": self.settings.max_memory}
        made = compile_kind(kind, text, self.vocab, schema_options=self._options, mode="background", **limits)
        if self.settings.within_max_tokens:
            _prepare_budgets(made)
        gone = []
        with self._lock:
            self._kept[kind, text] = made
            while len(self._kept) > self.settings.kept:
                gone.append(self._kept.popitem(last=False))
        return made


def _prepare_budgets(constraint: wfsa.Constraint) -> None:
    """Make what masks under a budget need, which no step of a batch should wait for."""
    start = constraint.start()
    with contextlib.suppress(StateError):  # it is not known how many tokens its texts need
        start.get_mask(budget=start.min_tokens())
        start.get_mask(budget=1 << 40)


_vocabularies: dict[int, tuple[Any, wfsa.Vocab]] = {}


def vocabulary_of(tokenizer: Any, size: int | None = None) -> wfsa.Vocab:
    """That of a tokenizer, kept with it; `size` is the width of the model's logits."""
    known = _vocabularies.get(id(tokenizer))
    if known is None or known[0] is not tokenizer or (size is not None and known[1].size != size):
        known = tokenizer, wfsa.Vocab.from_tokenizer(tokenizer, size=size)
        _vocabularies[id(tokenizer)] = known
    return known[1]
