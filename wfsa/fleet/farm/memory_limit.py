"""A limit on the memory that a process may take beside what it has, kept by the kernel.

The compiler looks at its own limit (``max_memory``) now and then, and a front end in Python not at all; what is taken
between two looks passes it by, and may be all that a machine has.  RLIMIT_DATA is never passed.  It counts private
memory that can be written, used or not: the heap, arrays, stacks of threads.  RLIMIT_AS would count all that is mapped,
files and Ray's object store among it, which are gigabytes that nobody takes.

A request beyond the limit fails, as MemoryError; where code takes no exception (a thread without a stack, a destructor)
the process ends, and the farm sees a task that ended its process.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")


@contextmanager
def memory_limit(n_bytes: int | None) -> Iterator[None]:
    """So many bytes more than there are now, within the block; None, or no Linux: no limit."""
    taken = _taken()
    if n_bytes is None or taken is None:
        yield
        return
    before = soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [limit for limit in (soft, hard, taken + n_bytes) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _taken() -> int | None:
    """What the kernel counts against RLIMIT_DATA, in bytes."""
    try:
        found = re.search(r"^VmData:\s*(\d+) kB$", _STATUS.read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) << 10
