"""What doors to serving engines share: settings of a service, constraints compiled once, a tokenizer's vocabulary."""

from __future__ import annotations

import contextlib
import functools
import logging
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from typing import Any, Final

from wfsa.compile_options import CompileOptions, Mode
from wfsa.constraint import Constraint
from wfsa.errors import StateError
from wfsa.fleet.metrics import Metrics
from wfsa.fleet.store import ConstraintStore
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.vocab import Vocab

_LOG: Final = logging.getLogger("wfsa.integrations")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a service may choose.

    schema_options: fields of :class:`wfsa.SchemaOptions`, as ``{"whitespace": "compact"}``.
    max_seconds, max_memory: of one compilation, which really ends there; seconds, and bytes.
    memory_bytes: of constraints that are kept for the next request, least recently used first out.
    store: where servers share compiled constraints, a URL or a folder (docs/fleet.md); None: nowhere.
    store_options: what fsspec takes beside that URL.
    disk_bytes: of artifacts from there that are kept on this machine; None: 4 GiB, or none where they lie here anyway.
    metrics_port: at which this process answers Prometheus, on 127.0.0.1; 0: it does not.
    threads: that fill the masks of a step.
    within_max_tokens: are texts kept within the request's ``max_tokens``, where that is known (docs/budgets.md)?
    wrap_up: fewer than so many tokens before what is needed then, nothing begins that need not be there.
    """

    schema_options: dict[str, Any] = field(default_factory=dict)
    max_seconds: float = 10.0
    max_memory: int | None = 1 << 30
    memory_bytes: int = 1 << 30
    store: str | None = None
    store_options: dict[str, Any] = field(default_factory=dict)
    disk_bytes: int | None = None
    metrics_port: int = 0
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
    """The constraints of requests over one vocabulary: compiled once, kept, and shared with other servers if wished.

    `read_only`: they are made only to see whether they can be, in this process and with as little work as that takes.
    """

    def __init__(self, vocab: Vocab, settings: Settings, *, read_only: bool = False) -> None:
        self.vocab, self.settings = vocab, settings
        self._options = SchemaOptions(**settings.schema_options)
        mode: Mode = "lazy" if read_only else "background"
        self._limits = CompileOptions(mode, max_seconds=settings.max_seconds, max_memory=settings.max_memory)
        self.metrics = metrics_of(settings.metrics_port) if settings.metrics_port and not read_only else None
        self.store = ConstraintStore(
            None if read_only else settings.store,
            vocab,
            memory_bytes=settings.memory_bytes,
            disk_bytes=0 if read_only or settings.store is None else settings.disk_bytes,
            url_options=settings.store_options,
            prepare=_prepare_budgets if settings.within_max_tokens and not read_only else None,
            observe=self.metrics.observe if self.metrics else None,
        )
        self._texts: weakref.WeakSet[Any] = weakref.WeakSet()
        if self.metrics:
            self.metrics.watch(self.store)
            self.metrics.count_states(self._texts.__len__)

    def of(self, kind: str, text: str) -> Constraint:
        """The constraint of a request; raises what compiling raises."""
        return self.store.get(text, self._limits, kind=kind, schema_options=self._options)

    def count(self, text: Any) -> None:
        """A text that is being written, for the metrics, until it is collected."""
        if self.metrics:
            self._texts.add(text)

    def timed_masks(self) -> AbstractContextManager[None]:
        """Around the filling of a step's masks, for the metrics."""
        return self.metrics.masks() if self.metrics else contextlib.nullcontext()


@functools.cache
def _metrics() -> Metrics:
    return Metrics()


@functools.cache
def metrics_of(port: int) -> Metrics:
    """Those of the process, served at a port of 127.0.0.1, if it is free: of several processes the first one has it."""
    metrics = _metrics()
    try:
        metrics.serve(port)
    except OSError as error:
        _LOG.warning("no metrics of this process at port %d: %s", port, error)
    return metrics


def _prepare_budgets(constraint: Constraint) -> None:
    """Make what masks under a budget need, which no step of a batch should wait for."""
    start = constraint.start()
    with contextlib.suppress(StateError):  # it is not known how many tokens its texts need
        start.get_mask(budget=start.min_tokens())
        start.get_mask(budget=1 << 40)


_vocabularies: dict[int, tuple[Any, Vocab]] = {}


def vocabulary_of(tokenizer: Any, size: int | None = None) -> Vocab:
    """That of a tokenizer, kept with it; `size` is the width of the model's logits."""
    known = _vocabularies.get(id(tokenizer))
    if known is None or known[0] is not tokenizer or (size is not None and known[1].size != size):
        known = tokenizer, Vocab.from_tokenizer(tokenizer, size=size)
        _vocabularies[id(tokenizer)] = known
    return known[1]
