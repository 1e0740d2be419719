"""What a worker does with a portion: compile each source ahead of time and put it into the store.

A source that fails leaves a record in the store, beside where its artifact would lie, so that a farm that is begun
again does not try it again under the same limits.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from wfsa.compile_options import CompileOptions
from wfsa.errors import SchemaWarning, WfsaError
from wfsa.farm.sources import Source
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.requests import compile_kind
from wfsa.storage.places import Place
from wfsa.store.artifact import name_of, pack
from wfsa.vocab import Vocab

FAILED_SUFFIX: Final = ".failed.json"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where artifacts go, and how they are compiled."""

    url: str
    url_options: dict[str, Any]
    schema_options: SchemaOptions
    options: CompileOptions

    def limits(self) -> dict[str, Any]:
        """What decides whether a source fails."""
        chosen = asdict(replace(self.options, progress=None))
        return {name: value for name, value in chosen.items() if name.startswith("max_")}


class Task(NamedTuple):
    """A source under its key."""

    source: Source
    key: str


class Outcome(NamedTuple):
    """What became of a source for a vocabulary.

    status    "stored"; "there", it was in the store; "failed"; "failed before", under the same limits
    error     why, in one line; "" if it did not fail
    seconds   of compiling
    n_bytes   of the artifact
    """

    place: str
    vocabulary: str
    status: str
    error: str = ""
    seconds: float = 0.0
    n_bytes: int = 0


def failure_name(key: str, vocab: Vocab) -> str:
    """Where the record of a failure lies."""
    return name_of(key, vocab).rsplit(".", 1)[0] + FAILED_SUFFIX


def record_failure(store: Place, vocab: Vocab, task: Task, error: str, settings: Settings) -> None:
    """Leave word of a failure in the store."""
    record = {"place": task.source.place, "error": error, "limits": settings.limits()}
    store.write(failure_name(task.key, vocab), [json.dumps(record, sort_keys=True).encode()])


def compile_portion(
    portion: Sequence[Task], vocab: Vocab, vocabulary: str, settings: Settings, store: Place
) -> list[Outcome]:
    """The outcome of each task, in their order; raises what the store's file system raises."""
    return [_compile_one(task, vocab, vocabulary, settings, store) for task in portion]


def _compile_one(task: Task, vocab: Vocab, vocabulary: str, settings: Settings, store: Place) -> Outcome:
    place, kind, text = task.source
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)
            made = compile_kind(
                kind, text, vocab, schema_options=settings.schema_options, options=settings.options
            )
    except (WfsaError, MemoryError, RecursionError) as problem:
        error = f"{type(problem).__name__}: {problem}"
        record_failure(store, vocab, task, error, settings)
        return Outcome(place, vocabulary, "failed", error, time.perf_counter() - begin)
    seconds = time.perf_counter() - begin
    data = pack(made, task.key)
    store.write(name_of(task.key, vocab), [data])
    return Outcome(place, vocabulary, "stored", "", seconds, len(data))
