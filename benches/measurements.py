"""What the workers reported, by engine and job, and the percentiles of it.

Times are in the unit that a field names. `samples` are kept for each walk, so that a table can be made over any set of
jobs: what two engines both took, or the last tenth of a long text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(slots=True)
class WalkRun:
    verdict: bool | None
    expected: bool
    n_tokens: int = 0
    refused_at: int | None = None
    start_us: float | None = None
    fork_us: float | None = None
    out_of_time: bool = False


@dataclass(slots=True)
class Samples:
    first_us: list[float] = field(default_factory=list)
    mask_us: list[float] = field(default_factory=list)
    commit_us: list[float] = field(default_factory=list)


@dataclass(slots=True)
class JobRun:
    """`status`: "ok", "refused" (did not compile), "broken" (failed later), "timeout", "crashed", "not reached"."""

    id: str
    status: str = "not reached"
    error: str | None = None
    compile_ms: float | None = None
    walks: list[WalkRun] = field(default_factory=list)
    samples: dict[int, Samples] = field(default_factory=dict)
    artifact: dict[str, float] | None = None
    first_mask: dict[str, float] | None = None  # from the schema to the first mask, in a busy process
    peak_mb: float | None = None
    grown_mb: float | None = None  # over what the process held before this job

    @property
    def right(self) -> bool:
        """Everything was judged, and as expected."""
        return self.status == "ok" and all(w.verdict is None or w.verdict == w.expected for w in self.walks)

    def pool(self, name: str) -> list[float]:
        return [x for samples in self.samples.values() for x in getattr(samples, name)]

    def tail(self, name: str) -> list[float]:
        """The last tenth of the longest walk."""
        lists: list[list[float]] = [getattr(samples, name) for samples in self.samples.values()]
        longest = max(lists, key=len, default=[])
        return list(longest[-max(1, len(longest) // 10) :])

    def raw(self, engine: str, keep_samples: bool) -> dict[str, Any]:
        """One JSON line."""
        out: dict[str, Any] = {"engine": engine, "job": self.id, "status": self.status, "error": self.error}
        out["compile_ms"] = self.compile_ms
        out["verdicts"] = [{"expected": w.expected, "verdict": w.verdict, "at": w.refused_at} for w in self.walks]
        out["start_us"] = [w.start_us for w in self.walks]
        out["fork_us"] = [w.fork_us for w in self.walks]
        out["first_mask"] = self.first_mask
        out["artifact"], out["peak_mb"], out["grown_mb"] = self.artifact, self.peak_mb, self.grown_mb
        for name in ("first_us", "mask_us", "commit_us"):
            values = self.pool(name)
            out[name] = {"n": len(values), **{f"p{p:g}": percentile(values, p) for p in (50, 99, 100)}}
            if keep_samples:
                out[name]["samples"] = values
        return out


@dataclass(slots=True)
class EngineRun:
    engine: str
    jobs: list[JobRun]
    setup: dict[str, float] = field(default_factory=dict)

    def take(self, event: dict[str, Any]) -> bool:
        """Add one event; True when it ends a job."""
        what = event.pop("event")
        if what == "ready":
            self.setup = self.setup or event
            return False
        job = self.jobs[event.pop("job")]
        if what == "compiled":
            job.compile_ms, job.status = event["compile_ms"], "ok"
        elif what in ("refused", "broken"):
            job.status, job.error = what, event["error"]
        elif what == "samples":
            samples = job.samples.setdefault(event["walk"], Samples())
            for name in ("first_us", "mask_us", "commit_us"):
                getattr(samples, name).extend(event[name])
        elif what == "walk":
            del event["walk"]
            job.walks.append(WalkRun(**event))
        elif what == "artifact":
            job.artifact = event
        elif what == "first mask":
            job.first_mask, job.status = event, "ok"
        elif what == "done":
            job.peak_mb, job.grown_mb = event["peak_mb"], event["grown_mb"]
        return bool(what == "done")

    @property
    def compiled(self) -> set[str]:
        return {job.id for job in self.jobs if job.compile_ms is not None and job.status == "ok"}

    @property
    def peak_mb(self) -> float:
        return max((job.peak_mb for job in self.jobs if job.peak_mb is not None), default=float("nan"))

    def only(self, ids: Collection[str]) -> EngineRun:
        return EngineRun(self.engine, [job for job in self.jobs if job.id in ids], self.setup)

    def pool(self, name: str) -> list[float]:
        """Samples of `first_us`, `mask_us`, `commit_us`, `start_us`, `fork_us` or `compile_ms` over all jobs."""
        if name == "compile_ms":
            return [job.compile_ms for job in self.jobs if job.compile_ms is not None]
        if name in ("start_us", "fork_us"):
            values = (getattr(walk, name) for job in self.jobs for walk in job.walks)
            return [x for x in values if x is not None]
        return [x for job in self.jobs for x in job.pool(name)]

    def at(self, name: str, p: float) -> float | None:
        return percentile(self.pool(name), p)

    def count(self, holds: Callable[[WalkRun], bool]) -> int:
        return sum(holds(walk) for job in self.jobs for walk in job.walks)


def percentile(values: Iterable[float], p: float) -> float | None:
    listed = list(values)
    return round(float(np.percentile(listed, p)), 3) if listed else None


def ratio(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or not theirs else ours / theirs
