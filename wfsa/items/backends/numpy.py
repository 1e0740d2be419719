"""The step over items in NumPy: the reference. One node at a time, in the words of the definitions.

``nodes`` is int64 of any shape; with filters, one a request, its first axis is the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from wfsa.errors import ItemError
from wfsa.items.beams import Beams, Normalise, check_normalise
from wfsa.items.bits import pack_bits
from wfsa.items.filter import AnyFilter, Filters, check_filters, filter_of_request
from wfsa.items.index_data import IndexData
from wfsa.items.nodes import ENDED, NONE, Int64s, pack


def continuations(
    index: IndexData, node: int, live: AnyFilter | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Tokens and child nodes of one node: the end token first where an item ends here, then the codes' by code."""
    codes, children, low, high = index.layout.expand(node)
    if live is not None:
        keep = live.any_live(low, high)
        codes, children = codes[keep], children[keep]
    level = node >> 50
    tokens = codes + index.levels.offsets[level] if len(codes) else codes
    if index.levels.end_token is not None and node >= 0 and level != ENDED:
        leaf = int(index.layout.terminals(np.asarray([node]))[0])
        if leaf >= 0 and (live is None or live.any_live(np.asarray([leaf]), np.asarray([leaf + 1]))[0]):
            tokens = np.concatenate([[index.levels.end_token], tokens])
            children = np.concatenate([np.asarray([pack(ENDED, 1, leaf)]).reshape(1), children])
    return tokens, children


def _each(index: IndexData, nodes: Int64s, filters: Filters) -> Iterator[tuple[int, int, AnyFilter | None]]:
    """Position in the flattened array, node and filter, for every node."""
    n_requests = nodes.shape[0] if nodes.ndim else 1
    check_filters(filters, n_requests, index.fingerprint)
    share = max(nodes.size // max(n_requests, 1), 1)
    for at, node in enumerate(nodes.reshape(-1).tolist()):
        yield at, node, filter_of_request(filters, at // share)


def allowed(index: IndexData, nodes: Int64s, filters: Filters = None) -> npt.NDArray[np.int32]:
    """Packed masks int32[*nodes.shape, ceil(logits_size / 32)], bit ``t % 32`` of word ``t // 32``."""
    present = np.zeros((nodes.size, index.levels.n_words * 32), np.bool_)
    for at, node, live in _each(index, nodes, filters):
        present[at, continuations(index, node, live)[0]] = True
    return pack_bits(present).reshape(*nodes.shape, index.levels.n_words)


def children(index: IndexData, nodes: Int64s, filters: Filters = None) -> tuple[Int64s, npt.NDArray[np.int32], Int64s]:
    """Children of flattened nodes, as ``indptr`` int64[n + 1], ``tokens`` int32 and child nodes int64."""
    found = [continuations(index, node, live) for _, node, live in _each(index, nodes, filters)]
    indptr = np.cumsum([0, *(len(tokens) for tokens, _ in found)]).astype(np.int64)
    empty = np.zeros(0, np.int64)
    tokens = np.concatenate([empty, *(tokens for tokens, _ in found)])
    return indptr, tokens.astype(np.int32), np.concatenate([empty, *(nodes for _, nodes in found)])


def mask_logits(index: IndexData, logits: npt.NDArray[Any], nodes: Int64s, filters: Filters = None) -> npt.NDArray[Any]:
    """A copy of ``logits[*nodes.shape, V]`` with -inf at what is not allowed."""
    out = np.full_like(logits, -np.inf).reshape(nodes.size, -1)
    flat = logits.reshape(nodes.size, -1)
    for at, node, live in _each(index, nodes, filters):
        tokens = continuations(index, node, live)[0]
        out[at, tokens] = flat[at, tokens]
    return out.reshape(logits.shape)


def advance(index: IndexData, nodes: Int64s, tokens: npt.NDArray[Any], filters: Filters = None) -> Int64s:
    """The node after each token; NONE where the token is not allowed."""
    out = np.full(nodes.size, NONE, np.int64)
    flat = tokens.reshape(-1)
    for at, node, live in _each(index, nodes, filters):
        allowed_tokens, next_nodes = continuations(index, node, live)
        hit = np.flatnonzero(allowed_tokens == flat[at])
        if len(hit):
            out[at] = next_nodes[hit[0]]
    return out.reshape(nodes.shape)


def beam_step(
    index: IndexData,
    beams: Beams,
    logits: npt.NDArray[Any],
    width: int,
    normalise: Normalise,
    filters: Filters = None,
) -> Beams:
    """One step as defined in ``wfsa.items.beams``: exact top ``width`` of each request."""
    check_normalise(normalise)
    n_requests, n_beams = beams.nodes.shape
    check_filters(filters, n_requests, index.fingerprint)
    n_steps = beams.sequences.shape[2]
    nodes = np.full((n_requests, width), NONE, np.int64)
    scores = np.full((n_requests, width), -np.inf, np.float32)
    parents, tokens = np.zeros((n_requests, width), np.int32), np.full((n_requests, width), -1, np.int32)
    sequences = np.full((n_requests, width, n_steps + 1), -1, np.int32)
    for request in range(n_requests):
        live = filter_of_request(filters, request)
        found: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.int64], int]] = []
        for beam in range(n_beams):
            node, score = int(beams.nodes[request, beam]), np.float32(beams.scores[request, beam])
            if not beams.valid[request, beam] or node < 0:
                continue
            if finished(index, node):
                low, high = index.layout.intervals(np.asarray([node]))
                if live is None or live.any_live(low, high)[0]:
                    found.append((np.asarray([score]), np.asarray([-1]), np.asarray([node]), beam))
                continue
            options, targets = continuations(index, node, live)
            row = logits[request, beam].astype(np.float32, copy=False)
            values = row[options]
            norm = _norm(index, row, node, values, normalise)
            if np.isnan(values).any() or np.isposinf(values).any() or np.isnan(norm) or np.isposinf(norm):
                raise ItemError(f"logits of request {request}, beam {beam} have NaN or +inf")
            if norm > -np.inf:
                found.append(((score - norm) + values, options, targets, beam))
        if not found:
            continue
        all_scores = np.concatenate([x[0] for x in found])
        all_tokens = np.concatenate([x[1] for x in found])
        all_nodes = np.concatenate([x[2] for x in found])
        all_beams = np.repeat([x[3] for x in found], [len(x[0]) for x in found])
        order = np.lexsort((all_tokens, all_beams, -all_scores))
        order = order[all_scores[order] > -np.inf][:width]
        k = len(order)
        nodes[request, :k], scores[request, :k] = all_nodes[order], all_scores[order]
        parents[request, :k], tokens[request, :k] = all_beams[order], all_tokens[order]
        sequences[request, :k, :-1] = beams.sequences[request, all_beams[order]]
        sequences[request, :k, -1] = all_tokens[order]
    return Beams(nodes, scores, nodes >= 0, parents, tokens, sequences)


def finished(index: IndexData, node: int) -> bool:
    """Whether an item is complete at this node and nothing can follow."""
    if node >> 50 == ENDED:
        return True
    return len(continuations(index, node)[0]) == 0


def _norm(
    index: IndexData, row: npt.NDArray[np.float32], node: int, values: npt.NDArray[np.float32], normalise: Normalise
) -> np.float32:
    """Log-sum-exp in float64, rounded once; -inf over nothing."""
    if normalise == "none":
        return np.float32(0)
    if normalise == "valid":
        over = values
    elif normalise == "full":
        over = row
    else:
        level = node >> 50
        inside = level < len(index.levels)  # past the last level there is only the end token
        begin, size = (index.levels.offsets[level], index.levels.sizes[level]) if inside else (0, 0)
        over = row[begin : begin + size]
        if index.levels.end_token is not None:
            over = np.concatenate([over, row[[index.levels.end_token]]])
    if not len(over):
        return np.float32(-np.inf)
    top = np.float64(over.max())
    if not np.isfinite(top):
        return np.float32(top)
    return np.float32(top + np.log(np.exp(over.astype(np.float64) - top).sum()))
