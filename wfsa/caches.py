"""What the process keeps for the next constraint, within one budget of bytes.

    automata             minimal automata of terminals, by regular tree                    ext/bindings/regular.pyx
    state names          what equal states of automata are recognised by                   ext/regular/state_names.hpp
    walks and universes  profiles and united tails, of all vocabularies                    ext/profiles/cache.hpp

Each has a share of the budget, because they live in different places, and the time of use compares entries of one kind
only; in its share, what was asked for longest ago goes first.  State names have no such order, and all go at once.
What a cache holds is counted there, also where constraints hold it too.
"""

from __future__ import annotations

from operator import index

from wfsa._ext import regular, vocabulary
from wfsa.errors import WfsaError

DEFAULT_BUDGET = 192 << 20  # bytes
_PARTS, _OF_AUTOMATA, _OF_NAMES = 16, 5, 1  # the rest is for walks and universes


def set_cache_budget(n_bytes: int) -> None:
    """Keep at most `n_bytes` for the next constraint; what is beyond goes at once, least recently used first.

    The budget is the process's, for all vocabularies; 0 keeps nothing, so that every constraint is compiled from
    scratch.  Constraints at hand are not touched.  WfsaError where `n_bytes` is negative, TypeError where it is no
    integer.
    """
    n = index(n_bytes)
    if not 0 <= n < 1 << 62:
        raise WfsaError(f"a budget of {n} bytes; it must be at least 0 and below 2**62")
    automata, names = _OF_AUTOMATA * n // _PARTS, _OF_NAMES * n // _PARTS
    regular.set_cache_limits(automata, names)
    vocabulary.set_cache_limit(n - automata - names)


def empty_caches() -> None:
    """Keep nothing of what is there; the budget stays."""
    limit = cache_info()["total"]["limit"]
    set_cache_budget(0)
    set_cache_budget(limit)


def cache_info() -> dict[str, dict[str, int]]:
    """``entries``, ``bytes`` and ``limit`` of each cache of the process, and of all together as ``total``.

    The caches are ``automata``, ``state names``, and ``walks and universes``; how much of the last is a vocabulary's
    says ``vocab.cache_info()``.
    """
    info = regular.cache_info() | {"walks and universes": vocabulary.cache_info()}
    total = {what: sum(cache[what] for cache in info.values()) for what in ("entries", "bytes", "limit")}
    return info | {"total": total}


set_cache_budget(DEFAULT_BUDGET)
