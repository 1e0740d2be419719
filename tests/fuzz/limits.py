"""How long the fuzzers run, small compile limits, and the alarm for what never ends.

Sizes are numbers of examples, not seconds: a failure is found again with the same seed on any machine.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import settings

import wfsa

SCALE = {"nightly": 40, "quick": 0.1}.get(settings.get_current_profile_name(), 0.4)
ALARM = 600  # seconds for one example; a slow machine needs a thousandth
LIMITS = {
    "max_terminal_states": 3000, "max_lr_states": 3000, "max_lexer_states": 3000, "max_seconds": 1.0,
    "max_memory": 256 << 20,
}  # fmt: skip
OVERRUN_SECONDS, OVERRUN_BYTES = 4.0, 256 << 20  # of the processor, on a slow one, and some of it is Python's collector


@functools.cache
def _keeps_what_is_freed() -> bool:
    """Is this process run with AddressSanitizer, whose quarantine is no leak of ours?"""
    try:
        with open("/proc/self/maps", encoding="utf-8") as f:
            return "libasan" in f.read()
    except OSError:
        return False


def resident() -> int:
    """Bytes of this process in memory; 0 where the system, or a sanitizer, does not tell."""
    if _keeps_what_is_freed():
        return 0
    try:
        with open("/proc/self/statm", "rb") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def examples(n: int) -> int:
    """So many in ``make test``, more of them at night."""
    return max(1, int(n * SCALE))


@contextmanager
def alarm() -> Iterator[None]:
    """A hang ends the process with the traceback of the example."""
    faulthandler.dump_traceback_later(ALARM, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def byte_vocab() -> wfsa.Vocab:
    """All bytes, some longer tokens that cross the boundaries of terminals, a named special token and an end."""
    pieces = ['{"', '":', '", "', "}]", " =", "ab", "aa", "12", "-1.", "e+", "\n  ", "é", "\u2028", "null", "if ", "(("]
    tokens = [*(bytes([b]) for b in range(256)), *(p.encode() for p in pieces), b"\xa9a", b"", b"<|x|>", b"</s>"]
    n = len(tokens)
    return wfsa.Vocab(tokens, special_token_ids=[n - 2, n - 1], eos_token_ids=[n - 1], special_names={"<|x|>": n - 2})


def walk(constraint: wfsa.Constraint, choose: random.Random, steps: int) -> None:
    """Take random allowed tokens; a token of the mask is one that can be committed."""
    state = constraint.start()
    for _ in range(steps):
        allowed = state.get_mask().ids()
        assert len(allowed) or state.is_finished() or not state.is_accepting()
        if not len(allowed):
            return
        token = int(allowed[choose.randrange(len(allowed))])
        assert state.commit(token), f"token {token} is in the mask and was refused"
