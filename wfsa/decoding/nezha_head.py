"""NezhaHead: a small autoregressive head that drafts a whole id from one forward pass of the model.

L placeholder embeddings follow the prompt, so that one pass gives L + 1 hidden states: that of the prompt's last token,
``h_0``, and one for each level.  The head goes on without the model::

    prompt  p1 … pn   ◇1   ◇2   ◇3                    one prefill
                 │     │    │    │
                h_0   h_1  h_2  h_3
                 │     │    │    │
                 ▼     ▼    ▼    ▼
                s_1 ─► c1   c2   c3          logits_l = C_l · gelu(A_l · [h_l ; s_l])
                  └──►s_2─►s_3               s_{l+1}  = RNN(s_l, E_l[c_l])

Only the recurrent state depends on the codes chosen, so a beam costs two small products a level.

**Ablations** are settings of the head: ``transition`` "rnn" (a GRU cell), "add" (s + E[c]) or "none" (codes are drafted
independently given the prompt); ``placeholders=False`` gives every level ``h_0``.

Source: Wang et al., *NEZHA: A Zero-sacrifice and Hyperspeed Decoding Architecture for Generative Recommendations*
(WWW 2026, arXiv 2511.18793).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Final, Literal

import torch
from torch import nn

from wfsa.errors import DecodingError

Transition = Literal["rnn", "add", "none"]
TRANSITIONS: Final = ("rnn", "add", "none")


class NezhaHead(nn.Module):  # type: ignore[misc]
    """``sizes``: codes of each level; ``width``: the model's hidden size; ``state``: width of s (default: `width`)."""

    def __init__(
        self,
        sizes: Sequence[int],
        width: int,
        *,
        state: int | None = None,
        transition: Transition = "rnn",
        placeholders: bool = True,
    ) -> None:
        super().__init__()
        state = width if state is None else state
        if not sizes or min(sizes) < 1 or width < 1 or state < 1:
            raise DecodingError(f"sizes {list(sizes)}, width {width} and state {state} must be at least 1 each")
        if transition not in TRANSITIONS:
            raise DecodingError(f"transition is one of {', '.join(TRANSITIONS)}, not {transition!r}")
        self.sizes = tuple(int(size) for size in sizes)
        self.width, self.transition = width, transition
        n = len(self.sizes)
        self.placeholders = nn.Parameter(torch.randn(n, width) * 0.02) if placeholders else None
        self.begin = nn.Linear(width, state)
        self.mixes = nn.ModuleList(nn.Linear(width + state, width) for _ in range(n))
        self.codes = nn.ModuleList(nn.Linear(width, size) for size in self.sizes)
        self.embeddings = nn.ModuleList(nn.Embedding(size, state) for size in self.sizes[:-1])
        self.cell = nn.GRUCell(state, state) if transition == "rnn" else None

    @property
    def n_levels(self) -> int:
        return len(self.sizes)

    def hidden(self, model: Any, prompts: Sequence[Sequence[int]] | torch.Tensor) -> torch.Tensor:
        """One forward pass → [B, L + 1, width]: h_0 and the placeholders'.

        Prompts are padded on the right, after the placeholders: a causal model never sees the padding, and no mask or
        position has to be given.  Raises :class:`DecodingError` for a model or prompts that do not fit.
        """
        base, embed = self.check(model)
        rows = [[index(token) for token in prompt] for prompt in _lists(prompts)]
        if not rows or not all(rows):
            raise DecodingError("there must be a prompt, and each needs at least one token")
        if min(map(min, rows)) < 0 or max(map(max, rows)) >= embed.num_embeddings:
            raise DecodingError(f"a prompt has a token outside range({embed.num_embeddings}), the model's vocabulary")
        device = embed.weight.device
        lengths = torch.tensor([len(row) for row in rows], device=device)
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows], device=device)
        inputs: torch.Tensor = embed(ids)
        n = 0 if self.placeholders is None else self.n_levels
        limit = getattr(model.config, "max_position_embeddings", None)
        if limit and width + n > limit:
            raise DecodingError(f"prompt and placeholders make {width + n} positions; the model has {limit}")
        at = (lengths - 1)[:, None] + torch.arange(n + 1, device=device)  # [B, n + 1]
        if self.placeholders is not None:
            inputs = torch.cat([inputs, inputs.new_zeros(len(rows), n, inputs.shape[2])], 1)
            places = at[:, 1:, None].expand(-1, -1, inputs.shape[2])
            inputs = inputs.scatter(1, places, self.placeholders.to(inputs.dtype).expand(len(rows), -1, -1))
        states = base(inputs_embeds=inputs, use_cache=False).last_hidden_state
        found: torch.Tensor = states.gather(1, at[:, :, None].expand(-1, -1, states.shape[2]))
        found = found.to(self.begin.weight.dtype)
        return found if n else found.expand(-1, self.n_levels + 1, -1)

    def start(self, hidden: torch.Tensor) -> torch.Tensor:
        """s_1 [B, state] from [B, L + 1, width]."""
        state: torch.Tensor = torch.tanh(self.begin(hidden[:, 0]))
        return state

    def logits(self, level: int, hidden: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Logits [B, b, sizes[level]] from [B, L + 1, width] and states [B, b, state]."""
        h = hidden[:, level + 1, None].expand(-1, state.shape[1], -1)
        out: torch.Tensor = self.codes[level](nn.functional.gelu(self.mixes[level](torch.cat([h, state], -1))))
        return out

    def follow(self, level: int, state: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """The states after the codes int64[B, b] of `level` (not the last one)."""
        if self.transition == "none":
            return state
        embedded: torch.Tensor = self.embeddings[level](codes)
        if self.cell is None:
            return state + embedded
        flat: torch.Tensor = self.cell(embedded.flatten(0, 1), state.flatten(0, 1))
        return flat.view_as(state)

    def log_probs(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """log P(target) by level, teacher forced: float[B, L] from [B, L + 1, width] and codes int64[B, L]."""
        if targets.ndim != 2 or targets.shape[1] != self.n_levels or targets.is_floating_point():
            raise DecodingError(f"targets are {targets.dtype}{list(targets.shape)}, not int64 [B, {self.n_levels}]")
        if bool((targets < 0).any()) or bool((targets >= torch.tensor(self.sizes, device=targets.device)).any()):
            raise DecodingError(f"targets have a code outside {list(self.sizes)}")
        state = self.start(hidden)[:, None]
        parts = []
        for level in range(self.n_levels):
            codes = targets[:, level, None]
            log_p = torch.log_softmax(self.logits(level, hidden, state), -1)
            parts.append(log_p.gather(2, codes[:, :, None])[:, 0, 0])
            if level + 1 < self.n_levels:
                state = self.follow(level, state, codes)
        return torch.stack(parts, 1)

    def check(self, model: Any) -> tuple[Any, nn.Embedding]:
        """The base model and the input embeddings, or a :class:`DecodingError` for a model that does not fit."""
        name = type(model).__name__
        embed = getattr(model, "get_input_embeddings", lambda: None)()
        base = getattr(model, "base_model", None)
        if not isinstance(embed, nn.Embedding) or base is None or base is model:
            raise DecodingError(f"{name} is no transformers language model with input embeddings and a base model")
        if getattr(model.config, "is_encoder_decoder", False):
            raise DecodingError(f"{name} is no decoder-only language model")
        if embed.embedding_dim != self.width:
            raise DecodingError(f"the head is for hidden states of {self.width}, {name} has {embed.embedding_dim}")
        return base, embed


def _lists(prompts: Sequence[Sequence[int]] | torch.Tensor) -> Sequence[Sequence[int]]:
    if not isinstance(prompts, torch.Tensor):
        return prompts
    if prompts.ndim != 2 or prompts.is_floating_point():
        raise DecodingError(f"prompts must be int64[B, P] or lists of ids, not {prompts.dtype}{list(prompts.shape)}")
    rows: list[list[int]] = prompts.tolist()
    return rows
