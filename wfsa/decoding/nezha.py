"""NEZHA: whole ids drafted by beam search over a small head, after one pass of the model, and checked without one.

**Problem.**  Beam search over an id of L codes runs the model L times.  In serving, that is most of the time.

**In → out.**  A model and a head trained with it (nezha_training.py), prompts → for each the b best ids, with scores.

**Algorithm.**::

    h_0 … h_L = one forward pass                                      nezha_head.py
    for each level:  scores + log-softmax(head) ─► top b ─► the head's states follow the parents
    check:    none            drafts as they are; some are no items
              IdHashSet       the drafts that are items move to the front, the others are flagged     id_hash_set.py
              ItemIndex       codes that no item has are -inf while drafting: every draft is an item

**The carried interval.**  A hash set can only throw drafts away: with b beams of which a third are items, a third of b
remains.  An item index says at every level which codes come next, so that the beams are spent on items only.  Scores
keep the head's full normalisation, as in the trie beam search, so with either check the score of an item is the same.

**Invariants.**  Best first.  With an ItemIndex a beam that does not exist is flagged, never filled.

Source: Wang et al. (WWW 2026, arXiv 2511.18793); carrying the interval is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from wfsa.decoding.disc import check_count
from wfsa.decoding.id_hash_set import IdHashSet
from wfsa.decoding.item_tokens import ItemTokens
from wfsa.decoding.nezha_head import NezhaHead
from wfsa.errors import DecodingError
from wfsa.items import ItemIndex


@dataclass(frozen=True, slots=True)
class NezhaResult:
    """Drafts of B requests, best first; with an IdHashSet, items before the others.

    ``codes`` int64[B, b, L]; ``scores`` [B, b]: summed log-probability under the head, -inf where there is no beam;
    ``valid`` bool[B, b]: known to be an item (all False where nothing was checked).
    """

    codes: torch.Tensor
    scores: torch.Tensor
    valid: torch.Tensor


def nezha_search(
    model: Any,
    head: NezhaHead,
    prompts: torch.Tensor | Sequence[Sequence[int]],
    *,
    n_beams: int,
    verify: IdHashSet | ItemIndex | None = None,
) -> NezhaResult:
    """Draft the ``n_beams`` best ids of each prompt from one forward pass of the model.

    ``prompts``: token ids, one list a request, or int64[B, P].  ``verify``: see the module.
    Raises :class:`DecodingError` for counts below 1, more beams than ids (or items), an empty set, a head, model and
    set that do not fit together.
    """
    check_count("n_beams", n_beams)
    if not isinstance(head, NezhaHead):
        raise DecodingError(f"head must be a NezhaHead, not {type(head).__name__}")
    head.check(model)
    n_ids = 1
    for size in head.sizes:
        n_ids *= size
    tokens = None
    if isinstance(verify, ItemIndex):
        tokens = _fitting(verify, head)
        n_ids = verify.n_leaves
    elif isinstance(verify, IdHashSet):
        if verify.sizes != head.sizes:
            raise DecodingError(f"the set is for levels of {list(verify.sizes)}, the head for {list(head.sizes)}")
        if not len(verify):
            raise DecodingError("the set of ids is empty")
    elif verify is not None:
        raise DecodingError(f"verify is an IdHashSet, an ItemIndex or None, not {type(verify).__name__}")
    if n_beams > n_ids:
        raise DecodingError(f"n_beams is {n_beams}, and there are only {n_ids} ids")
    if model.training or head.training:
        raise DecodingError("model and head must be in evaluation mode: call .eval() on both")
    with torch.no_grad():
        hidden = head.hidden(model, prompts)
        codes, scores = _draft(head, hidden, n_beams, tokens)
        valid = torch.zeros_like(scores, dtype=torch.bool)
        if tokens is not None:
            valid = ~torch.isneginf(scores)
        elif isinstance(verify, IdHashSet):
            valid = verify.contains(codes.to(verify.device)).to(codes.device)
            order = torch.sort(valid.to(torch.int8), dim=1, descending=True, stable=True).indices
            codes = codes.gather(1, order[:, :, None].expand_as(codes))
            scores, valid = scores.gather(1, order), valid.gather(1, order)
    return NezhaResult(codes, scores, valid)


def _draft(
    head: NezhaHead, hidden: torch.Tensor, n_beams: int, constraint: ItemTokens | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Beam search over the head: codes int64[B, b, L] and scores [B, b]."""
    n_requests = len(hidden)
    state = head.start(hidden)[:, None]  # one beam before the first code
    scores = hidden.new_zeros(n_requests, 1)
    codes = torch.zeros((n_requests, 1, 0), dtype=torch.int64, device=hidden.device)
    cursor: Any = None if constraint is None else constraint.start(n_requests)
    for level, size in enumerate(head.sizes):
        log_p = torch.log_softmax(head.logits(level, hidden, state), -1)
        if constraint is not None:
            offset = constraint.index.levels.offsets[level]
            allowed = constraint.allowed(cursor, hidden.device)[:, offset : offset + size]
            log_p = log_p.masked_fill(~allowed.view_as(log_p), -torch.inf)
        n_old = scores.shape[1]
        flat = (scores[:, :, None] + log_p).flatten(1)
        scores, best = torch.topk(flat, min(n_beams, flat.shape[1]), dim=1)
        parents, chosen = best // size, best % size
        codes = torch.cat([codes.gather(1, parents[:, :, None].expand(-1, -1, level)), chosen[:, :, None]], 2)
        if constraint is not None:
            rows = torch.arange(n_requests, device=parents.device)[:, None] * n_old + parents
            rows = rows.masked_fill(torch.isneginf(scores), -1)
            tokens = chosen + constraint.index.levels.offsets[level]
            cursor = constraint.advance(cursor, rows.flatten(), tokens.flatten())
        if level + 1 < head.n_levels:
            parent_states = state.gather(1, parents[:, :, None].expand(-1, -1, state.shape[2]))
            state = head.follow(level, parent_states, chosen)
    return codes.masked_fill(torch.isneginf(scores)[:, :, None], -1), scores


def _fitting(index: ItemIndex, head: NezhaHead) -> ItemTokens:
    if index.levels.sizes != head.sizes:
        raise DecodingError(f"the index has levels of {list(index.levels.sizes)}, the head of {list(head.sizes)}")
    if not index.n_leaves:
        raise DecodingError("the item index is empty")
    if index.layout.lengths is not None:
        raise DecodingError("items of different lengths: the head drafts ids of one length")
    return ItemTokens(index)
