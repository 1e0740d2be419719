"""What doors to serving engines share: settings of a service, constraints compiled once, a tokenizer's vocabulary."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import wfsa
from wfsa.requests import compile_kind


@dataclass(frozen=True, slots=True)
class Settings:
    """What a service may choose.

    schema_options: fields of :class:`wfsa.SchemaOptions`, as ``{"whitespace": "compact"}``.
    max_seconds, max_memory: of one compilation, which really ends there; seconds, and bytes.
    kept: constraints that are kept for the next request, least recently used first out.
    threads: that fill the masks of a step.
    """

    schema_options: dict[str, Any] = field(default_factory=dict)
    max_seconds: float = 10.0
    max_memory: int | None = 1 << 30
    kept: int = 256
    threads: int = 1

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
        gone = []
        with self._lock:
            self._kept[kind, text] = made
            while len(self._kept) > self.settings.kept:
                gone.append(self._kept.popitem(last=False))
        return made


_vocabularies: dict[int, tuple[Any, wfsa.Vocab]] = {}


def vocabulary_of(tokenizer: Any, size: int | None = None) -> wfsa.Vocab:
    """That of a tokenizer, kept with it; `size` is the width of the model's logits."""
    known = _vocabularies.get(id(tokenizer))
    if known is None or known[0] is not tokenizer or (size is not None and known[1].size != size):
        known = tokenizer, wfsa.Vocab.from_tokenizer(tokenizer, size=size)
        _vocabularies[id(tokenizer)] = known
    return known[1]
