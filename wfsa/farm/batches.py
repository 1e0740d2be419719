"""Which sources are missing in the store, and in what portions they go to workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from wfsa.errors import WfsaError
from wfsa.farm.sources import Source
from wfsa.farm.worker import FAILED_SUFFIX, Outcome, Settings, Task, failure_name
from wfsa.storage.places import Place
from wfsa.store.artifact import key_in, name_of
from wfsa.store.request import Request
from wfsa.vocab import Vocab

_PORTION_BYTES: Final = 200_000  # of source text, which is what compile times follow
_PORTION_TASKS: Final = 64


class Portion(NamedTuple):
    """Tasks over one vocabulary, by the vocabulary's place in the list; `alone`: a second try of one task."""

    vocab: int
    tasks: list[Task]
    alone: bool = False

    @property
    def cost(self) -> int:
        """Bytes of source text."""
        return sum(len(task.source.text) for task in self.tasks)


class Plan(NamedTuple):
    """What is left to be done, dearest first, and what is known already."""

    portions: list[Portion]
    known: list[Outcome]


def plan(
    sources: Iterable[Source], vocabs: list[Vocab], names: list[str], settings: Settings, store: Place,
    retry_failed: bool,
) -> Plan:  # fmt: skip
    """Look into the store once a vocabulary; equal sources are one task."""
    there, failed = [], []
    for vocab in vocabs:
        folder = name_of("", vocab).rsplit("/", 1)[0]
        found = [entry.name for entry in store.listing(folder)]
        there.append({key_in(name) for name in found})
        ends = (name.rsplit("/", 1)[-1] for name in found)
        failed.append({name.removesuffix(FAILED_SUFFIX) for name in ends if name.endswith(FAILED_SUFFIX)})
    known: list[Outcome] = []
    todo: list[list[Task]] = [[] for _ in vocabs]
    for source in sources:
        for number, vocab in enumerate(vocabs):
            try:
                request = Request.of(source.kind, source.text, settings.schema_options, settings.options)
                key = request.key(vocab)
            except WfsaError as error:
                known.append(Outcome(source.place, names[number], "failed", f"{type(error).__name__}: {error}"))
                continue
            if key in there[number]:
                known.append(Outcome(source.place, names[number], "there"))
                continue
            if key in failed[number] and not retry_failed:
                record = json.loads(store.get(failure_name(key, vocab)) or b"{}")
                if record.get("limits") == settings.limits():
                    known.append(Outcome(source.place, names[number], "failed before", str(record.get("error"))))
                    continue
            there[number].add(key)
            todo[number].append(Task(source, key))
    portions = [Portion(n, tasks) for n, listed in enumerate(todo) for tasks in _portions(listed)]
    return Plan(sorted(portions, key=lambda portion: -portion.cost), known)


def _portions(tasks: list[Task]) -> Iterator[list[Task]]:
    """Like costs together, so that none waits behind something much dearer."""
    portion: list[Task] = []
    size = 0
    for task in sorted(tasks, key=lambda task: (-len(task.source.text), task.key)):
        portion.append(task)
        size += len(task.source.text)
        if size >= _PORTION_BYTES or len(portion) == _PORTION_TASKS:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
