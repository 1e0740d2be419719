"""NezhaHead: the published head, which drafts a whole id from one forward pass of the model.

The levels are linear, and a state carries the codes that were chosen from level to level::

    prompt  p1 … pn   ◇1   ◇2   ◇3                    one prefill                            draft_head.py
                 │     │    │    │
                h_0   h_1  h_2  h_3
                 │     │    │    │
                 ▼     ▼    ▼    ▼
                s_1 ─► c1   c2   c3          s_1 = h_0
                  └──►s_2─►s_3               logits_l = W_l (h_l + s_l)
                                             s_{l+1}  = RNN_l(s_l, E_l[c_l])

Only the state depends on the codes, so a beam costs one small product and one step of a recurrent cell for each level.

**Ablations.**  ``transition="add"`` is s_{l+1} = s_l + E_l[c_l]: under a linear head the codes then only add to the
logits.  ``transition="none"`` (NEZHA-1 of the publication) has no state: logits_l = W_l h_l, and codes are drafted
independently, given the prompt.  ``placeholders=False`` gives every level h_0.

**Source.**  Wang et al., *NEZHA: A Zero-sacrifice and Hyperspeed Decoding Architecture for Generative Recommendations*
(WWW 2026, arXiv 2511.18793).  The text writes the logits as a function of h_l and s_l.  The sum, a matrix without bias,
and a plain tanh cell for each level are those of the code that its authors published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import torch
from torch import nn

from wfsa.decoding.draft_head import DraftHead
from wfsa.errors import DecodingError

Transition = Literal["rnn", "add", "none"]
TRANSITIONS: Final = ("rnn", "add", "none")


class NezhaHead(DraftHead):
    """The head for levels of ``sizes`` codes on a model of hidden size ``width``; for the options see the module."""

    def __init__(
        self, sizes: Sequence[int], width: int, *, transition: Transition = "rnn", placeholders: bool = True
    ) -> None:
        super().__init__(sizes, width, placeholders=placeholders)
        if transition not in TRANSITIONS:
            raise DecodingError(f"transition must be one of {', '.join(TRANSITIONS)}, got {transition!r}")
        self.transition = transition
        followed = [] if transition == "none" else self.sizes[:-1]  # nothing follows the last level
        self.codes = nn.ModuleList(nn.Linear(width, size, bias=False) for size in self.sizes)
        self.embeddings = nn.ModuleList(nn.Embedding(size, width) for size in followed)
        self.cells = nn.ModuleList(nn.RNNCell(width, width) for _ in (followed if transition == "rnn" else []))

    def start(self, hidden: torch.Tensor) -> torch.Tensor:
        """Returns h_0 [B, width] from [B, L + 1, width]."""
        return hidden[:, 0]

    def logits(self, level: int, hidden: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        h = hidden[:, level + 1, None]
        x = h.expand(-1, state.shape[1], -1) if self.transition == "none" else h + state
        out: torch.Tensor = self.codes[level](x)
        return out

    def follow(self, level: int, state: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        if self.transition == "none":
            return state
        embedded: torch.Tensor = self.embeddings[level](codes)
        if self.transition == "add":
            return state + embedded
        flat: torch.Tensor = self.cells[level](embedded.flatten(0, 1), state.flatten(0, 1))
        return flat.view_as(state)
