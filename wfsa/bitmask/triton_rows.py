"""Rows of logits under bitmasks, on a device: one Triton kernel.

One program masks ``BLOCK`` logits of one row. It reads the words of the mask (32 adjacent logits read the same one) and
writes -inf where a bit is 0 or there is no word. Allowed logits are neither read nor written, so a nearly full mask
costs nearly nothing.

If all rows are masked and the bitmask is on the device, nothing is copied to it, and a call can be captured in a CUDA
graph.
"""

# Triton's language is not typed, and its functions are not Python's.
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from wfsa.errors import StateError

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as error:
    raise StateError(
        f"masking logits on a device needs {error.name}: `pip install triton`; or mask them on the CPU"
    ) from error

BLOCK: Final = 2048


@triton.jit
def _mask_block(logits, words, rows, logits_stride, words_stride, n_logits, n_words, BLOCK: tl.constexpr):
    row = tl.load(rows + tl.program_id(0)).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(words + row * words_stride + (at >> 5), mask=(at >> 5) < n_words, other=0)
    refused = ((word >> (at & 31)) & 1) == 0
    tl.store(logits + row * logits_stride + at, float("-inf"), mask=refused & (at < n_logits))


def mask_rows(logits: Any, words: Any, rows: Sequence[int]) -> None:
    """Mask ``logits`` float[B, V] on a device by ``words`` int32[B, W] on any device, or NumPy, in place.

    The caller has compared the shapes. Raises StateError if the logits are not floats, or not contiguous within a row.
    """
    if logits.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise StateError(f"the logits must be float16, bfloat16, float32 or float64, not {logits.dtype}")
    if logits.stride(1) != 1:
        raise StateError("on a device the logits must be contiguous within a row")
    if not rows:
        return
    if isinstance(words, np.ndarray):
        words = torch.from_numpy(words if words.flags.writeable else words.copy())
    words = words.to(logits.device, non_blocking=True).contiguous()
    where = {"dtype": torch.int32, "device": logits.device}
    every = len(rows) == len(logits) and list(rows) == list(range(len(rows)))
    chosen = torch.arange(len(rows), **where) if every else torch.tensor(rows, **where)
    n_logits, n_words = logits.shape[1], words.shape[1]
    grid = (len(rows), triton.cdiv(n_logits, BLOCK))
    _mask_block[grid](
        logits, words, chosen, logits.stride(0), words.stride(0), n_logits, n_words, BLOCK=BLOCK, num_warps=4
    )
