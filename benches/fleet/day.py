"""A day of a fleet, simulated: who waits for a compile, or begins with a constraint that still grows.

32 replicas behind a balancer that deals requests out at random.  Which schema a request has follows Zipf's law over the
schemas of the corpus; some requests bring a schema that nobody has sent before.  Replicas hold so many constraints in
memory, least recently used first out.  A release in the morning restarts all of them one after the other, and now and
then one crashes; a restart loses the memory, and not the disk.  What a compile, a load from disk and one from the
remote take is drawn, schema by schema, from times that were measured.

Ahead, a request waits until its constraint is complete, wherever it comes from.  In the background, it waits for the
lazy compile only, and its first masks are those of a constraint that grows: until it is expanded here, or has come
from the remote.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

HOURS = 24.0


@dataclass(frozen=True, slots=True)
class Fleet:
    replicas: int = 32
    requests: int = 500_000  # in the day
    schemas: int = 9_090
    exponent: float = 1.0
    new: float = 0.01  # share of requests with a schema that nobody has sent before
    in_memory: int = 1_000  # constraints a replica
    crashes: int = 16
    hits_seconds: float = 5e-6


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, measured, by schema."""

    compile: Sequence[float]
    lazy: Sequence[float]
    disk: Sequence[float]
    remote: Sequence[float]


@dataclass(frozen=True, slots=True)
class Day:
    compiled: float  # share of requests for which a whole compile is done
    compiled_again: float  # ... of a schema that some replica has compiled before
    growing: float  # seconds of growing constraints, over requests
    over_10ms: float  # share that waits for more than that, for whatever
    p999: float  # seconds of waiting
    compile_seconds: float  # of the whole fleet


def simulate(fleet: Fleet, times: Times, store: bool, background: bool, seed: int = 0) -> Day:
    chance = random.Random(seed)
    numbers = np.random.default_rng(seed)
    weights = 1 / np.arange(1, fleet.schemas + 1) ** fleet.exponent
    drawn = numbers.choice(fleet.schemas, fleet.requests, p=weights / weights.sum())
    fresh = numbers.random(fleet.requests) < fleet.new
    at = np.sort(numbers.random(fleet.requests)) * HOURS
    restarts = [(9 + number / fleet.replicas, number) for number in range(fleet.replicas)]
    restarts += [(chance.random() * HOURS, chance.randrange(fleet.replicas)) for _ in range(fleet.crashes)]
    restarts.sort(reverse=True)
    memory: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(fleet.replicas)]
    disk: list[set[int]] = [set() for _ in range(fleet.replicas)]
    known: set[int] = set()  # by anybody, and so by the remote
    waits = np.zeros(fleet.requests)
    compiled, again, busy, growing = 0, 0, 0.0, 0.0
    for number in range(fleet.requests):
        while restarts and restarts[-1][0] <= at[number]:
            memory[restarts.pop()[1]].clear()
        replica = chance.randrange(fleet.replicas)
        schema = fleet.schemas + number if fresh[number] else int(drawn[number])
        held = memory[replica]
        if schema in held:
            held.move_to_end(schema)
            waits[number] = fleet.hits_seconds
            continue
        sample = schema % len(times.compile)
        on_disk, at_remote = store and schema in disk[replica], store and schema in known
        if on_disk:
            waits[number] = times.disk[sample]
        else:
            remote, whole = times.remote[sample] if store else 0.0, 0.0 if at_remote else times.compile[sample]
            if not at_remote:
                busy += whole
                compiled += 1
                again += schema in known
                known.add(schema)
            if background:
                waits[number] = times.lazy[sample]
                busy += times.lazy[sample]
                growing += remote + whole
            else:
                waits[number] = remote + whole
        disk[replica].add(schema)
        held[schema] = None
        if len(held) > fleet.in_memory:
            held.popitem(last=False)
    n = fleet.requests
    return Day(
        compiled / n, again / n, growing / n, float(np.mean(waits > 0.01)), float(np.quantile(waits, 0.999)), busy
    )
