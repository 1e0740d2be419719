"""A farm from the sources to the report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from wfsa.arguments import both_options
from wfsa.errors import WfsaError
from wfsa.fleet.farm.batches import plan
from wfsa.fleet.farm.on_ray import run_on_ray
from wfsa.fleet.farm.processes import run_in_processes
from wfsa.fleet.farm.sources import Source
from wfsa.fleet.farm.worker import Outcome, Settings
from wfsa.storage.places import Place
from wfsa.vocab import Vocab

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from wfsa.compile_options import SchemaKeywords

LIMITS: Final[SchemaKeywords] = {"max_seconds": 60.0, "max_memory": 2 << 30}


@dataclass(frozen=True, slots=True)
class FarmReport:
    """All outcomes, and the seconds that it took."""

    outcomes: tuple[Outcome, ...]
    seconds: float

    def count(self, status: str) -> int:
        """How many outcomes have this status."""
        return sum(outcome.status == status for outcome in self.outcomes)

    @property
    def failures(self) -> list[Outcome]:
        """In the order of their places."""
        return sorted(outcome for outcome in self.outcomes if outcome.status.startswith("failed"))


def compile_all(
    sources: Iterable[Source],
    vocabs: dict[str, Vocab],
    url: str | os.PathLike[str],
    *,
    url_options: dict[str, Any] | None = None,
    workers: int | None = None,
    ray: str | None = None,
    ray_memory: int = 2 << 30,
    retry_failed: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Unpack[SchemaKeywords],
) -> FarmReport:
    """Compile every source for every vocabulary into the store at `url`; what is there is left alone.

    May be stopped and begun again at any time.  Sources that failed under the same limits are tried again under
    `retry_failed` only.

    vocabs: by the names that messages call them
    options: as for :func:`wfsa.compile_json_schema`; the limits of each compile are 60 seconds and 2 GiB unless they
        are given.  `mode` is always "ahead".  The kernel keeps a
        worker to twice `max_memory` and 256 MiB, on Linux, so that no source takes a machine's memory
    workers: processes of this machine; None: one a processor
    ray, ray_memory: a cluster's address, in place of processes here, and bytes reserved for each of its workers
    on_progress: called with (done, all), pairs of a source and a vocabulary

    A source whose artifact cannot be written has failed, and the others go on; OSError is raised where the store does
    not answer at the beginning, or nothing can be written any more.
    Raises WfsaError where an extra is missing, where there is no cluster, and for a URL that cannot be opened.
    """
    begin = time.perf_counter()
    if not vocabs:
        raise WfsaError("a farm needs at least one vocabulary")
    of_text, of_compiling = both_options("compile_all", {**LIMITS, **options})
    store = Place.of(url, url_options)
    settings = Settings(
        store.where, store.options, of_text, replace(of_compiling, mode="ahead", progress=None),
    )  # fmt: skip
    names, listed = list(vocabs), list(vocabs.values())
    todo = plan(sources, listed, names, settings, store, retry_failed)
    outcomes = list(todo.known)
    total = len(outcomes) + sum(portion.n_sources for portion in todo.portions)
    tell = on_progress or (lambda done, total: None)
    tell(len(outcomes), total)
    if ray is not None:
        results = run_on_ray(todo.portions, listed, names, settings, ray, ray_memory)
    else:
        workers = workers or len(os.sched_getaffinity(0))
        results = run_in_processes(todo.portions, listed, names, settings, workers)
    for done in results if todo.portions else ():
        outcomes.extend(done)
        tell(len(outcomes), total)
    return FarmReport(tuple(outcomes), time.perf_counter() - begin)
