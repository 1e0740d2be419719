"""The step over items in NumPy: the reference. One node at a time, in the words of the definitions.

What is stepped through has one part, an index, or two: the base of a changing catalogue and what was added. A node is
one id a part, NONE where the part does not have the prefix. ``nodes`` is int64 of any shape, with a last axis of 2 for
two parts; with filters, one a request, its first axis is the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from wfsa._ext.items_step import StepCore
from wfsa.errors import ItemError
from wfsa.items.beams import Beams, Normalise, check_normalise
from wfsa.items.bits import pack_bits
from wfsa.items.filter import AnyFilter
from wfsa.items.index_data import IndexData
from wfsa.items.levels import Levels
from wfsa.items.nodes import ENDED, NONE, Int64s, pack

Node = tuple[int, ...]
PartFilters = tuple[AnyFilter | None, ...]
"""A request's filter for each part; None: all of the part is live."""


class HostItems(Protocol):
    """An index, or a state of a changing catalogue."""

    @property
    def parts(self) -> tuple[IndexData, ...]: ...
    @property
    def present(self) -> PartFilters:
        """What there is of each part."""

    @property
    def levels(self) -> Levels: ...
    @property
    def core(self) -> StepCore: ...
    def part_filters(self, filters: Any, n_requests: int) -> list[PartFilters] | None:
        """The filters of each request, without what is not present. Raises ItemError on filters that do not fit."""


def continuations(items: HostItems, node: Node, live: PartFilters) -> tuple[list[int], list[Node]]:
    """Tokens and child nodes of one node: the end token first where an item ends here, then the codes' by code."""
    end = items.levels.end_token
    found: dict[int, list[int]] = {}
    for number, (part, one, only) in enumerate(zip(items.parts, node, live, strict=True)):
        for token, child in _continuations(part, one, only):
            found.setdefault(token, [NONE] * len(node))[number] = child
    tokens = sorted(found, key=lambda token: (token != end, token))
    return tokens, [tuple(found[token]) for token in tokens]


def _continuations(part: IndexData, node: int, live: AnyFilter | None) -> list[tuple[int, int]]:
    """Token and child node of what is live after a node of one part."""
    codes, children, low, high = part.layout.expand(node)
    if live is not None:
        keep = live.any_live(low, high)
        codes, children = codes[keep], children[keep]
    level = node >> 50
    tokens = codes + part.levels.offsets[level] if len(codes) else codes
    found = list(zip(tokens.tolist(), children.tolist(), strict=True))
    if part.levels.end_token is not None and node >= 0 and level != ENDED:
        leaf = int(part.layout.terminals(np.asarray([node]))[0])
        if leaf >= 0 and (live is None or live.any_live(np.asarray([leaf]), np.asarray([leaf + 1]))[0]):
            found.append((part.levels.end_token, int(pack(ENDED, 1, leaf))))
    return found


def _each(items: HostItems, nodes: Int64s, filters: Any) -> Iterator[tuple[int, Node, PartFilters]]:
    """Position in the flattened array, node and filters, for every node."""
    one, n_requests, share = shape_of(items, nodes)
    given = items.part_filters(filters, n_requests)
    for at, node in enumerate(nodes.reshape(-1, one).tolist()):
        yield at, tuple(node), items.present if given is None else given[at // share]


def shape_of(items: HostItems, nodes: Int64s) -> tuple[int, int, int]:
    """Ids a node, requests, and nodes a request."""
    sides = len(items.parts)
    n_requests = nodes.shape[0] if nodes.ndim > (sides > 1) else 1
    return sides, n_requests, max(nodes.size // sides // max(n_requests, 1), 1)


def _shaped(nodes: list[Node], items: HostItems, *shape: int) -> Int64s:
    """Nodes as int64 of this shape, with a last axis for two parts."""
    sides = len(items.parts)
    return np.asarray(nodes, np.int64).reshape(*shape, *[sides] * (sides > 1))


def _rows(items: HostItems, nodes: Int64s) -> tuple[int, ...]:
    """The shape of an array of nodes without their ids' axis."""
    return nodes.shape[:-1] if len(items.parts) > 1 else nodes.shape


def allowed(items: HostItems, nodes: Int64s, filters: Any = None) -> npt.NDArray[np.int32]:
    """Packed masks int32[…, ceil(logits_size / 32)], bit ``t % 32`` of word ``t // 32``."""
    rows, n_words = _rows(items, nodes), items.levels.n_words
    present = np.zeros((int(np.prod(rows)), n_words * 32), np.bool_)
    for at, node, live in _each(items, nodes, filters):
        present[at, continuations(items, node, live)[0]] = True
    return pack_bits(present).reshape(*rows, n_words)


def children(items: HostItems, nodes: Int64s, filters: Any = None) -> tuple[Int64s, npt.NDArray[np.int32], Int64s]:
    """Children of flattened nodes, as ``indptr`` int64[n + 1], ``tokens`` int32 and child nodes int64."""
    found = [continuations(items, node, live) for _, node, live in _each(items, nodes, filters)]
    indptr = np.cumsum([0, *(len(tokens) for tokens, _ in found)]).astype(np.int64)
    tokens = np.asarray([token for some, _ in found for token in some], np.int32)
    return indptr, tokens, _shaped([node for _, some in found for node in some], items, len(tokens))


def mask_logits(items: HostItems, logits: npt.NDArray[Any], nodes: Int64s, filters: Any = None) -> npt.NDArray[Any]:
    """A copy of ``logits[…, V]`` with -inf at what is not allowed."""
    n = int(np.prod(_rows(items, nodes)))
    out, flat = np.full_like(logits, -np.inf).reshape(n, -1), logits.reshape(n, -1)
    for at, node, live in _each(items, nodes, filters):
        tokens = continuations(items, node, live)[0]
        out[at, tokens] = flat[at, tokens]
    return out.reshape(logits.shape)


def advance(items: HostItems, nodes: Int64s, tokens: npt.NDArray[Any], filters: Any = None) -> Int64s:
    """The node after each token; NONE where the token is not allowed."""
    flat, after = tokens.reshape(-1).tolist(), []
    for at, node, live in _each(items, nodes, filters):
        following = dict(zip(*continuations(items, node, live), strict=True))
        after.append(following.get(flat[at], (NONE,) * len(node)))
    return _shaped(after, items, *_rows(items, nodes))


def beam_step(
    items: HostItems,
    beams: Beams,
    logits: npt.NDArray[Any],
    width: int,
    normalise: Normalise,
    filters: Any = None,
) -> Beams:
    """One step as defined in ``wfsa.items.beams``: exact top ``width`` of each request."""
    check_normalise(normalise)
    n_requests, n_beams = beams.nodes.shape[:2]
    given = items.part_filters(filters, n_requests)
    flat = beams.nodes.reshape(n_requests, n_beams, len(items.parts)).tolist()
    nodes = np.full((n_requests, width, len(items.parts)), NONE, np.int64)
    scores = np.full((n_requests, width), -np.inf, np.float32)
    valid, parents = np.zeros((n_requests, width), np.bool_), np.zeros((n_requests, width), np.int32)
    tokens = np.full((n_requests, width), -1, np.int32)
    sequences = np.full((n_requests, width, beams.sequences.shape[2] + 1), -1, np.int32)
    for request in range(n_requests):
        live = items.present if given is None else given[request]
        found: list[tuple[np.float32, int, int, Node]] = []  # score, beam, token, node
        for beam in range(n_beams):
            node, score = tuple(flat[request][beam]), np.float32(beams.scores[request, beam])
            if not beams.valid[request, beam] or max(node) < 0:
                continue
            if finished(items, node):
                if _any_live(items, node, live):
                    found.append((score, beam, -1, node))
                continue
            options, targets = continuations(items, node, live)
            row = logits[request, beam].astype(np.float32, copy=False)
            values = row[options]
            norm = _norm(items.levels, row, max(node) >> 50, values, normalise)
            if np.isnan(values).any() or np.isposinf(values).any() or np.isnan(norm) or np.isposinf(norm):
                raise ItemError(f"logits of request {request}, beam {beam} have NaN or +inf")
            if norm > -np.inf:
                found += zip((score - norm) + values, [beam] * len(options), options, targets, strict=True)
        found = [one for one in found if one[0] > -np.inf]
        found.sort(key=lambda one: (-one[0], one[1], one[2]))
        for place, (score, beam, token, node) in enumerate(found[:width]):
            nodes[request, place], scores[request, place], valid[request, place] = node, score, True
            parents[request, place], tokens[request, place] = beam, token
            sequences[request, place, :-1] = beams.sequences[request, beam]
            sequences[request, place, -1] = token
    nodes = nodes.reshape(n_requests, width, *beams.nodes.shape[2:])
    return Beams(nodes, scores, valid, parents, tokens, sequences)


def finished(items: HostItems, node: Node) -> bool:
    """Whether an item is complete at this node and nothing can follow in the whole catalogue."""
    return max(node) >> 50 == ENDED or not continuations(items, node, items.present)[0]


def _any_live(items: HostItems, node: Node, live: PartFilters) -> bool:
    """Whether a node has a live leaf."""
    for part, one, only in zip(items.parts, node, live, strict=True):
        low, high = part.layout.intervals(np.asarray([one]))
        if one >= 0 and (only is None or only.any_live(low, high)[0]):
            return True
    return False


def _norm(
    levels: Levels, row: npt.NDArray[np.float32], level: int, values: npt.NDArray[np.float32], normalise: Normalise
) -> np.float32:
    """Log-sum-exp in float64, rounded once; -inf over nothing."""
    if normalise == "none":
        return np.float32(0)
    if normalise == "valid":
        over = values
    elif normalise == "full":
        over = row
    else:
        inside = level < len(levels)  # past the last level there is only the end token
        begin, size = (levels.offsets[level], levels.sizes[level]) if inside else (0, 0)
        over = row[begin : begin + size]
        if levels.end_token is not None:
            over = np.concatenate([over, row[[levels.end_token]]])
    if not len(over):
        return np.float32(-np.inf)
    top = np.float64(over.max())
    if not np.isfinite(top):
        return np.float32(top)
    return np.float32(top + np.log(np.exp(over.astype(np.float64) - top).sum()))
