"""Saving an index and mapping it back: one safetensors file, arrays and a JSON head, no code.

Loading maps the file: nothing is read until it is used, except that ``verify`` reads each array once and checks every
index in it, so that a damaged file cannot make a kernel read outside its arrays. What a check of indices cannot see
(one code changed to another) a checksum would, at the price of reading everything: ``verify`` does that too.
Same index, same bytes.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa.errors import ArtifactError, ItemError, LimitError
from wfsa.items.csr import CsrLayout, check_csr
from wfsa.items.index import ItemIndex
from wfsa.items.interval import IntervalLayout, check_interval
from wfsa.items.levels import Levels

FORMAT: Final = "wfsa-items"
VERSION: Final = 1
_DTYPES: Final = {"U8": np.uint8, "U16": np.uint16, "I32": np.int32, "I64": np.int64}
_NAMES: Final = {np.dtype(kind): name for name, kind in _DTYPES.items()}
_BLOCK: Final = 1 << 24


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
    arrays = index.arrays()
    # The widest types first, so that every array lies at a multiple of its type's size.
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    head["checksums"] = {name: _checksum(arrays[name]) for name in names}
    header: dict[str, Any] = {"__metadata__": {"wfsa": json.dumps(head, sort_keys=True)}}
    at = 0
    for name in names:
        array = arrays[name]
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with scratch.open("wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                for block in _blocks(arrays[name]):
                    out.write(block)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], *, verify: bool = True) -> ItemIndex:
    """Map a saved index; see :meth:`ItemIndex.load`."""
    where = str(path)
    head, table, base = _header(Path(path), where)
    if head.get("format") != FORMAT:
        raise ArtifactError(f"{where} is not an item index (format {head.get('format')!r})")
    if head.get("version") != VERSION:
        raise ArtifactError(
            f"{where} has format version {head.get('version')!r}, this wfsa reads {VERSION}; build it again"
        )
    arrays = _map(Path(path), table, base, where)
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
        sums = head.get("checksums")
        for name, array in arrays.items():
            if not isinstance(sums, dict) or sums.get(name) != _checksum(array):
                raise ArtifactError(f"{where} is damaged: {name} does not match its checksum")
    return index


def _header(path: Path, where: str) -> tuple[dict[str, Any], dict[str, Any], int]:
    with path.open("rb") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 16 or not 2 <= length <= size - 8:
            raise ArtifactError(f"{where} is not an item index, or it is cut short ({size} bytes)")
        text = file.read(length)
    try:
        table = json.loads(text)
        head = json.loads(table.pop("__metadata__")["wfsa"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ArtifactError(f"{where} is not an item index, or its header is damaged") from None
    if not isinstance(head, dict) or not isinstance(table, dict):
        raise ArtifactError(f"{where} is damaged: bad header")
    return head, table, 8 + length


def _map(path: Path, table: dict[str, Any], base: int, where: str) -> dict[str, npt.NDArray[Any]]:
    size = path.stat().st_size - base
    arrays: dict[str, npt.NDArray[Any]] = {}
    data = np.memmap(path, np.uint8, "r", base) if size else np.zeros(0, np.uint8)
    end = 0
    for name, entry in table.items():
        try:
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(int(x) for x in entry["shape"])
            begin, stop = (int(x) for x in entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            raise ArtifactError(f"{where} is damaged: bad entry for array {name!r}") from None
        count = 1
        for extent in shape:
            count *= extent
        if min((0, *shape)) < 0 or len(shape) > 2 or stop - begin != count * dtype.itemsize or begin % dtype.itemsize:
            raise ArtifactError(f"{where} is damaged: array {name!r} does not fit its place")
        if not 0 <= begin <= stop <= size:
            raise ArtifactError(f"{where} is cut short: array {name!r} ends at byte {base + stop} of {base + size}")
        end = max(end, stop)
        arrays[name] = np.asarray(data[begin:stop]).view(dtype).reshape(shape)
    if end != size:
        raise ArtifactError(f"{where} is damaged: {size - end} bytes belong to no array")
    return arrays


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


def _blocks(array: npt.NDArray[Any]) -> Any:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for begin in range(0, len(flat), _BLOCK):
        yield flat[begin : begin + _BLOCK].data


def _checksum(array: npt.NDArray[Any]) -> int:
    value = 0
    for block in _blocks(array):
        value = zlib.crc32(block, value)
    return value
