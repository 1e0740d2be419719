"""Building a catalogue on a Ray cluster: the steps of ``wfsa/items/sharded_build.py`` as Ray's tasks.

Nothing here is a protocol, a scheduler or a lock: Ray moves the rows from the tasks that read to those that pack,
spills what does not fit into its object stores to disk, and runs a task again, and what its inputs came from, when the
process or the machine that ran it is gone. Shards are written where they are made; the caller's process sees keys of a
sample and the shards' names.

Tasks must reach the source and the place: URLs, or folders that all machines share. wfsa has to be installed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from wfsa.errors import ItemError, WfsaError
from wfsa.items.files import Block, list_tables
from wfsa.items.sharded_build import Job, Piece, pack_range, read
from wfsa.items.shards import Packed, Part
from wfsa.storage import ray_cluster

T = TypeVar("T")
RETRIES: Final = 5
"""How often a task is run again whose process died, or that met an error of a file system."""
cluster = partial(ray_cluster.cluster, error=ItemError)


@dataclass(frozen=True, slots=True)
class DataBlock:
    """A block of a dataset, in Ray's object store."""

    ref: Any
    where: str

    def table(self) -> Any:
        import ray

        return ray.get(self.ref)


class OnRay:
    """Runs the steps as tasks of one processor each; ``limit`` bounds how many at once (None: as many as go)."""

    def __init__(self, ray: Any, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise ItemError(f"concurrency of {limit}")
        self._ray, self._limit = ray, limit

    def tables(self, source: Any) -> Sequence[str | Block]:
        """Files, or the blocks of a dataset of Ray Data, which is run for them; its order is that of Ray Data."""
        if not hasattr(source, "to_arrow_refs"):
            return list_tables(source)
        return [DataBlock(ref, f"block {number}") for number, ref in enumerate(source.to_arrow_refs())]

    def map(self, step: Callable[..., T], inputs: Sequence[tuple[Any, ...]]) -> list[T]:
        return self._get(self._start(step, inputs))

    def shuffle(self, job: Job, pieces: Sequence[Piece], report: Callable[[float], None]) -> list[Packed | None]:
        known, n_ranges = self._ray.put(job), len(job.boundaries) + 1
        parts = self._start(_read, [(known, piece) for piece in pieces], returns=n_ranges)
        if n_ranges == 1:
            parts = [[one] for one in parts]
        by_range = ((known, *(part[i] for part in parts)) for i in range(n_ranges))
        waiting = packed = self._start(pack_range, by_range)
        del parts, by_range  # what a range has taken may go
        while waiting:
            done, waiting = self._ray.wait(waiting, num_returns=1)
            self._get(done)
            report(1 - len(waiting) / n_ranges)
        return self._get(packed)

    def _start(self, step: Callable[..., Any], inputs: Iterable[tuple[Any, ...]], returns: int = 1) -> list[Any]:
        """Tasks' results to be, a list each where there are several; with a limit, waits until the last has begun."""
        remote = self._ray.remote(
            num_cpus=1, max_retries=RETRIES, retry_exceptions=[OSError], num_returns=returns
        )(step)  # fmt: skip
        started: list[Any] = []
        running: list[Any] = []
        for one in inputs:
            if self._limit is not None and len(running) >= self._limit:
                done, running = self._ray.wait(running, num_returns=1, fetch_local=False)
                self._get(done) if returns == 1 else None
            started.append(remote.remote(*one))
            running.append(started[-1] if returns == 1 else started[-1][0])
        return started

    def _get(self, tasks: list[Any]) -> list[Any]:
        """What tasks gave; an error of ours is raised as it was there."""
        try:
            found: list[Any] = self._ray.get(tasks)
        except self._ray.exceptions.RayTaskError as e:
            cause = getattr(e, "cause", None)
            if isinstance(cause, (WfsaError, OSError)):
                raise cause from None
            raise
        return found


def _read(job: Job, piece: Piece) -> list[Part] | Part:
    parts = read(job, piece)
    return parts if len(parts) > 1 else parts[0]
