"""Building a catalogue on a Ray cluster: the steps of ``wfsa/items/sharded_build.py`` as tasks of Ray.

This module has no protocol, scheduler or lock of its own. Ray moves the rows from the tasks that read to those that
pack, and spills what does not fit into its object stores to disk. If the process or machine that ran a task is lost,
Ray runs the task again, with the tasks that its inputs came from. Shards are written on the machine where they are
made. The caller's process sees only the keys of a sample and the shards' names.

Tasks must be able to reach the source and the place: URLs, or folders that all machines share. Every machine needs wfsa
installed.
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
"""How often a task is run again if its process died or it met an error of a file system."""
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
    """Runs the steps as tasks of one processor each. ``limit`` bounds how many run at once; None for no limit."""

    def __init__(self, ray: Any, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise ItemError(f"concurrency must be at least 1, got {limit}")
        self._ray, self._limit = ray, limit

    def tables(self, source: Any) -> Sequence[str | Block]:
        """Return files, or the blocks of a dataset of Ray Data, which is run for this; the order is Ray Data's."""
        if not hasattr(source, "to_arrow_refs"):
            return list_tables(source)
        return [DataBlock(ref, f"block {number}") for number, ref in enumerate(source.to_arrow_refs())]

    def map(self, step: Callable[..., T], inputs: Sequence[tuple[Any, ...]]) -> list[T]:
        return self._get(self._start(step, inputs))

    def shuffle(self, job: Job, pieces: Sequence[Piece], report: Callable[[float], None]) -> list[Packed | None]:
        job_ref, n_ranges = self._ray.put(job), len(job.boundaries) + 1
        parts = self._start(_read, [(job_ref, piece) for piece in pieces], returns=n_ranges)
        if n_ranges == 1:
            parts = [[one] for one in parts]
        by_range = ((job_ref, *(part[i] for part in parts)) for i in range(n_ranges))
        waiting = packed = self._start(pack_range, by_range)
        del parts, by_range  # frees the parts that the tasks have taken
        while waiting:
            done, waiting = self._ray.wait(waiting, num_returns=1)
            self._get(done)
            report(1 - len(waiting) / n_ranges)
        return self._get(packed)

    def _start(self, step: Callable[..., Any], inputs: Iterable[tuple[Any, ...]], returns: int = 1) -> list[Any]:
        """Start tasks and return their futures, lists if a task has several results.

        With a limit, it returns after the last task has started.
        """
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
        """Return the results of tasks. An error of wfsa or the operating system is raised as it was in the task."""
        try:
            results: list[Any] = self._ray.get(tasks)
        except self._ray.exceptions.RayTaskError as e:
            cause = getattr(e, "cause", None)
            if isinstance(cause, (WfsaError, OSError)):
                raise cause from None
            raise
        return results


def _read(job: Job, piece: Piece) -> list[Part] | Part:
    parts = read(job, piece)
    return parts if len(parts) > 1 else parts[0]
