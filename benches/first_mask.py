"""From the schema to the first mask, as a server has it: the collector on, in a process of a million objects.

The other times are taken with Python's garbage collector off, so that each is that of one call.  What a compilation
leaves to the collector is then in nobody's number, and a server pays it in the next call.  Here three calls are timed
in one go and apart: compile, the first start, the first mask.  A collection that falls between them is in the sum.
Of each job this is done once, in a worker of its own, and its texts are not walked.
"""

from __future__ import annotations

import gc
import time
from typing import Any

from benches.engines import Buffer, Engine

N_OBJECTS = 1_000_000


def busy_process() -> list[list[int]]:
    """The objects of a server, as the collector sees them: all in its oldest generation.  Turns the collector on."""
    objects = [[k] for k in range(N_OBJECTS)]
    gc.collect()
    gc.enable()
    return objects


def until_first_mask(engine: Engine, kind: Any, prepared: Any, buffer: Buffer) -> dict[str, float]:
    now = time.perf_counter_ns
    began = now()
    compiled = engine.compile(kind, prepared)
    at_compiled = now()
    state = engine.starter(compiled)()
    at_started = now()
    engine.filler(state, buffer)()
    ended = now()
    return {
        "compile_ms": (at_compiled - began) / 1e6, "start_us": (at_started - at_compiled) / 1e3,
        "first_us": (ended - at_started) / 1e3, "together_ms": (ended - began) / 1e6,
    }  # fmt: skip
