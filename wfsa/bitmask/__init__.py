"""Bitmasks for logits: a buffer for a batch's masks, and applying them to logits, in NumPy, torch and on a GPU."""

from wfsa.bitmask.allocate import allocate_bitmask
from wfsa.bitmask.apply import apply_bitmask_inplace

__all__ = ["allocate_bitmask", "apply_bitmask_inplace"]
