"""Beam search over items with a causal language model and its KV cache, in plain torch.

    found = beam_search(model, TorchItems(index, "cuda"), input_ids, width=20)
    found.items[0]           # ids of the best items for the first prompt, best first, -1 where there are no more

Prompts are read once; then every step feeds one token a beam, and the cache follows the beams (``reorder_cache``). The
search itself never reads a value on the host; the items are looked up once at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from wfsa.items.extras import needs

with needs("wfsa.items.beam_search", extra="items"):
    import torch

from wfsa.errors import ItemError
from wfsa.items.backends.device_layout import Tensor
from wfsa.items.backends.torch import TorchItems
from wfsa.items.beams import Beams, Normalise
from wfsa.items.filter import Filters
from wfsa.model_cache import cache_argument


@dataclass(frozen=True, slots=True, eq=False)
class ItemSearch:
    """The result of :func:`beam_search`.

    beams    the last Beams, on the device
    items    int64[B, width]: the first live item of each beam, -1 where there is no beam
    """

    beams: Beams
    items: npt.NDArray[np.int64]


def beam_search(
    model: Any,
    items: TorchItems,
    input_ids: Tensor,
    *,
    width: int,
    attention_mask: Tensor | None = None,
    normalise: Normalise = "full",
    filters: Filters = None,
) -> ItemSearch:
    """The ``width`` best items that a beam of ``width`` finds for each prompt.

    model           transformers' decoder-only models, or anything called the same: ``model(input_ids, attention_mask,
                    position_ids, cache, use_cache)`` with ``.logits`` and ``.cache``, whose cache has
                    ``batch_repeat_interleave`` and ``reorder_cache``; `past_key_values` is taken for `cache`
    input_ids       int64[B, P], padded on the left
    attention_mask  [B, P], 0 at padding; None: no padding
    filters         one for all prompts, or one (or None) a prompt

    Scores are sums of log-probabilities under ``normalise`` (see ``wfsa.items.beams``). With at least as many beams as
    items the ranking is exhaustive. Raises ItemError where the logits do not have the index's size (build it with
    ``logits_size=``), or on empty prompts.
    """
    if input_ids.ndim != 2 or input_ids.shape[1] < 1:
        raise ItemError(f"prompts have shape {list(input_ids.shape)}, not [B, P] with P >= 1")
    n_requests, n_prompt = input_ids.shape
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask.to(input_ids.dtype)
    if tuple(mask.shape) != (n_requests, n_prompt):
        raise ItemError(f"attention_mask has shape {list(mask.shape)}, the prompts {[n_requests, n_prompt]}")
    on_device = items.filters(filters, n_requests)
    n_steps = items.n_levels + (items.end_token is not None)
    beams = items.start(n_requests, 1)
    with torch.no_grad():
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        output = model(input_ids=input_ids, attention_mask=mask, position_ids=positions, use_cache=True)
        logits = output.logits[:, -1:].contiguous()
        position = positions[:, -1:]
        for step in range(n_steps):
            beams = items.beam_step(beams, logits, width=width, normalise=normalise, filters=on_device, level=step)
            if step + 1 == n_steps:
                break
            argument = cache_argument(model, output)
            (cache,) = argument.values()
            if step == 0:  # from one row a prompt to one a beam
                cache.batch_repeat_interleave(width)
                mask, position = mask.repeat_interleave(width, 0), position.repeat_interleave(width, 0)
                first_row = torch.arange(n_requests, device=input_ids.device)[:, None] * width
            else:
                cache.reorder_cache((first_row + beams.parents).reshape(-1))
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
            position = position + 1
            tokens = beams.tokens.clamp(min=0).to(input_ids.dtype).reshape(-1, 1)  # a missing beam feeds anything
            output = model(
                input_ids=tokens, attention_mask=mask, position_ids=position, use_cache=True, **argument
            )
            logits = output.logits[:, -1].reshape(n_requests, width, -1)
    return ItemSearch(beams, items.index.first_item(beams.nodes.cpu().numpy(), filters))
