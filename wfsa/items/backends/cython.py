"""The step over items, compiled: the same functions as ``wfsa.items.backends.numpy``, and the same results.

Choices are equal bit for bit; scores differ by the rounding of one log-sum-exp (ext/items/log_sum_exp.hpp), so a choice
could differ only between candidates whose scores are that close.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wfsa._ext.items_step import FilterCore
from wfsa.errors import ItemError
from wfsa.items.backends import numpy as reference
from wfsa.items.beams import NORMALISATIONS, Beams, Normalise, check_normalise
from wfsa.items.filter import AnyFilter, Filters, check_filters
from wfsa.items.index_data import IndexData
from wfsa.items.nodes import Int64s


def allowed(index: IndexData, nodes: Int64s, filters: Filters = None) -> npt.NDArray[np.int32]:
    """Packed masks int32[*nodes.shape, ceil(logits_size / 32)]."""
    flat, share, cores = _prepare(index, nodes, filters)
    return index.core.allowed(flat, share, cores).reshape(*nodes.shape, index.levels.n_words)


def children(index: IndexData, nodes: Int64s, filters: Filters = None) -> tuple[Int64s, npt.NDArray[np.int32], Int64s]:
    """Children of flattened nodes: ``indptr`` int64[n + 1], ``tokens`` int32, child nodes int64."""
    return index.core.children(*_prepare(index, nodes, filters))


def mask_logits(index: IndexData, logits: npt.NDArray[Any], nodes: Int64s, filters: Filters = None) -> npt.NDArray[Any]:
    """A copy of ``logits[*nodes.shape, V]`` with -inf at what is not allowed; other types than float32 by NumPy."""
    if logits.dtype != np.float32:
        return reference.mask_logits(index, logits, nodes, filters)
    flat, share, cores = _prepare(index, nodes, filters)
    return index.core.mask_logits(np.ascontiguousarray(logits), flat, share, cores)


def advance(index: IndexData, nodes: Int64s, tokens: npt.NDArray[Any], filters: Filters = None) -> Int64s:
    """The node after each token; NONE where the token is not allowed."""
    flat, share, cores = _prepare(index, nodes, filters)
    wanted = np.ascontiguousarray(tokens, np.int64).reshape(-1)
    return index.core.advance(flat, wanted, share, cores).reshape(nodes.shape)


def beam_step(
    index: IndexData,
    beams: Beams,
    logits: npt.NDArray[Any],
    width: int,
    normalise: Normalise,
    filters: Filters = None,
    threads: int = 1,
) -> Beams:
    """One step as defined in ``wfsa.items.beams``; requests are shared out among ``threads``."""
    check_normalise(normalise)
    nodes, _, cores = _prepare(index, beams.nodes, filters)
    bad, *arrays = index.core.beam_step(
        nodes.reshape(beams.nodes.shape),
        np.ascontiguousarray(beams.scores, np.float32),
        np.ascontiguousarray(beams.valid, np.bool_),
        np.ascontiguousarray(beams.sequences, np.int32),
        np.ascontiguousarray(logits, np.float32),
        width,
        NORMALISATIONS.index(normalise),
        cores,
        threads,
    )
    if bad >= 0:
        request, beam = divmod(bad, beams.nodes.shape[1])
        raise ItemError(f"logits of request {request}, beam {beam} have NaN or +inf")
    return Beams(*arrays)


def _prepare(index: IndexData, nodes: Int64s, filters: Filters) -> tuple[Int64s, int, list[FilterCore | None] | None]:
    """Flat nodes, nodes a request, and a filter's core (or None) for each request."""
    flat = np.ascontiguousarray(nodes).reshape(-1)
    if filters is None:
        return flat, 1, None
    n_requests = nodes.shape[0] if nodes.ndim else 1
    check_filters(filters, n_requests, index.fingerprint)
    share = max(nodes.size // max(n_requests, 1), 1)
    if isinstance(filters, AnyFilter):
        return flat, share, [filters.core] * n_requests
    return flat, share, [None if one is None else one.core for one in filters]
