"""A :class:`wfsa.items.ItemIndex` as a :class:`TokenConstraint`: the set of items, as sequences of the model's tokens.

The cursor is int64[n], one node of the index a sequence, -1 where dead.  Where the index has an end token, it ends
every item, also those of the last level, and is the only end token; where it has none, an item is over when
nothing can follow, so no item may be a prefix of another.
"""

from __future__ import annotations

import numpy as np
import torch

from wfsa.errors import DecodingError
from wfsa.items import ItemIndex
from wfsa.items.nodes import NONE, Int64s


class ItemTokens:
    """An item index as a :class:`TokenConstraint`.  The cursor is int64[n] of nodes, in NumPy."""

    __slots__ = ("index",)

    def __init__(self, index: ItemIndex) -> None:
        if index.has_prefix_items and index.levels.end_token is None:
            raise DecodingError("an item is a prefix of another: build the index with an end_token")
        self.index = index

    @property
    def n_tokens(self) -> int:
        return self.index.logits_size

    @property
    def eos_ids(self) -> tuple[int, ...]:
        end = self.index.levels.end_token
        return () if end is None else (end,)

    @property
    def n_sequences(self) -> int | None:
        return self.index.n_leaves

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence, the end token included."""
        return self.index.n_levels + len(self.eos_ids)

    def start(self, n: int) -> Int64s:
        return np.full(n, self.index.root, np.int64)

    def allowed(self, cursor: Int64s, device: torch.device) -> torch.Tensor:
        nodes, where = np.unique(cursor, return_inverse=True)  # rows of a batch meet in the same places
        packed = np.ascontiguousarray(self.index.allowed(nodes))
        bits = np.unpackbits(packed.view(np.uint8), axis=1, bitorder="little", count=self.n_tokens)
        return torch.from_numpy(bits.view(np.bool_)[where]).to(device)

    def advance(self, cursor: Int64s, parents: torch.Tensor, tokens: torch.Tensor) -> Int64s:
        rows, chosen = parents.cpu().numpy(), tokens.cpu().numpy()
        nodes = np.where(rows >= 0, cursor[np.maximum(rows, 0)], NONE)
        pairs, where = np.unique(np.stack([nodes, chosen.astype(np.int64)]), axis=1, return_inverse=True)
        advanced = self.index.advance(np.ascontiguousarray(pairs[0]), pairs[1])[where]
        if len(refused := np.flatnonzero((nodes >= 0) & (advanced < 0))):
            row = int(refused[0])
            raise DecodingError(f"row {row}: no item goes on with token {int(chosen[row])} there")
        return advanced
