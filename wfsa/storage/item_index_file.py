"""Saving an index and mapping it back: one safetensors file, arrays and a JSON head, no code.

Loading maps the file: nothing is read until it is used, except that ``verify`` reads each array once and checks every
index in it, so that a damaged file cannot make a kernel read outside its arrays. What a check of indices cannot see
(one code changed to another) a checksum would, at the price of reading everything: ``verify`` does that too.
Same index, same bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa.errors import ArtifactError, ItemError, LimitError
from wfsa.items.csr import CsrLayout, check_csr
from wfsa.items.index import ItemIndex
from wfsa.items.interval import IntervalLayout, check_interval
from wfsa.items.levels import Levels
from wfsa.storage import array_file

FORMAT: Final = "wfsa-items"
VERSION: Final = 1
_KIND: Final = "an item index"


def save(index: ItemIndex, path: str | os.PathLike[str]) -> None:
    """Write ``index`` to ``path`` by blocks (no second copy in memory); replaces an existing file in one step."""
    layout = index.layout
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "layout": layout.name,
        "levels": layout.levels.to_json(),
        "n_items": index.n_items,
        "n_leaves": layout.n_leaves,
        "depth": layout.depth,
        "has_prefix_items": layout.has_prefix_items,
    }
    if isinstance(layout, IntervalLayout):
        head.update(small=layout.small, slot_offset=list(layout.slot_offset))
    else:
        head["state_offset"] = list(layout.state_offset)
    array_file.write(path, head, index.arrays())


def load(path: str | os.PathLike[str], *, verify: bool = True) -> ItemIndex:
    """Map a saved index; see :meth:`ItemIndex.load`."""
    where = Path(path)
    head, arrays = array_file.read(where, _KIND, FORMAT, VERSION)
    try:
        index = _index(head, arrays)
        if verify:
            if isinstance(index.layout, IntervalLayout):
                check_interval(index.layout)
            else:
                check_csr(index.layout)
            _check_items(index)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, ItemError, LimitError) as e:
        reason = f"{e.args[0]!r} is missing" if isinstance(e, KeyError) else str(e)
        raise ArtifactError(f"{where} is damaged: {reason}") from None
    if verify:
        array_file.verify(where, head, arrays)
    return index


def _index(head: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> ItemIndex:
    spec = head["levels"]
    levels = Levels(tuple(spec["sizes"]), tuple(spec["offsets"]), spec["logits_size"], spec["end_token"])
    n, n_items, depth = int(head["n_leaves"]), int(head["n_items"]), int(head["depth"])
    if not 0 <= n <= n_items:
        raise ItemError(f"{n} leaves of {n_items} items")
    layout: IntervalLayout | CsrLayout
    rest: dict[str, Any] = dict(arrays)
    items = {name: rest.pop(name, None) for name in ("item_order", "item_indptr", "ids")}
    lengths = rest.pop("lengths", None)
    prefixes = bool(head["has_prefix_items"])
    if head["layout"] == "interval":
        slots = tuple(int(x) for x in head["slot_offset"])
        layout = IntervalLayout(
            levels, n, depth, int(head["small"]), slots, lengths=lengths, has_prefix_items=prefixes, **rest
        )
    elif head["layout"] == "csr":
        rest.setdefault("leaf_high", None)
        states = tuple(int(x) for x in head["state_offset"])
        layout = CsrLayout(levels, n, depth, states, lengths=lengths, has_prefix_items=prefixes, **rest)
    else:
        raise ItemError(f"unknown layout {head['layout']!r}")
    for name, array in rest.items():
        wants = 2 if name == "columns" else 1
        if array is not None and (
            array.ndim != wants or (name not in ("columns", "codes") and array.dtype.kind != "i")
        ):
            raise ItemError(f"{name} has shape {array.shape} and type {array.dtype}")
    if lengths is not None and (lengths.dtype != np.uint8 or lengths.shape != (n,)):
        raise ItemError("lengths have a wrong shape or type")
    for name, size in (("item_order", n_items), ("item_indptr", n + 1), ("ids", n_items)):
        part = items[name]
        if part is not None and (part.shape != (size,) or part.dtype.kind != "i"):
            raise ItemError(f"{name} has shape {part.shape} and type {part.dtype}")
    if items["item_indptr"] is None and n != n_items:
        raise ItemError("item_indptr is missing")
    return ItemIndex(layout, n_items, **items)


def _check_items(index: ItemIndex) -> None:
    order, indptr = index.item_order, index.item_indptr
    if order is not None and len(order) and not 0 <= int(order.min()) <= int(order.max()) < index.n_items:
        raise ItemError("item_order is out of range")
    if indptr is not None and (int(indptr[0]) != 0 or int(indptr[-1]) != index.n_items or np.any(np.diff(indptr) < 1)):
        raise ItemError("item_indptr does not rise from 0 to the number of items")
