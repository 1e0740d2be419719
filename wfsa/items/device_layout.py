"""An index's trie on a device: what a node's entries are, and where a child is, in tensor operations of fixed shape.

A node is read in two steps. ``fields`` looks at the id and finds where its *entries* begin and how many it has; entry i
of a node is one of

    small node   leaf ``base + i``: a child where its code differs from the entry before
    head node    slot ``base + i``: code i, a child where the slot is not empty
    list node    slot ``base + i`` (interval) or edge ``base + i`` (csr): always a child

``entry`` gives code and presence of entries, ``child`` the child's id and leaves, ``find`` the entry that has a code.
All take tensors of any shape and do no more than arithmetic and gathers, so shapes never depend on values and nothing
is read by the host. Codes never fall from entry to entry, which is what ``find``'s binary search needs; its number of
steps is that of the index's widest node.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from wfsa.items.csr import CsrLayout
from wfsa.items.head import HeadShape
from wfsa.items.interval import IntervalLayout
from wfsa.items.nodes import COUNT_SHIFT, ENDED, LEVEL_SHIFT, MAX_COUNT, VALUE_MASK

Tensor = Any

KEPT_WIDTHS: Final = 4096


@dataclass(frozen=True, slots=True)
class NodeFields:
    """Of nodes of any shape; int64 and bool tensors of that shape.

    there   not NONE              level  of the id; ENDED is ``n_levels`` here
    small, head                   which kind; a list where neither
    base, width                   first entry and number of entries
    stop    end of a small node's leaves
    column  where its level's codes begin (interval)
    number  number of its first child among the head's cells (csr)
    low, high                     its leaves
    own     an item ends here     ended    closed by the end token
    """

    there: Tensor
    level: Tensor
    small: Tensor
    head: Tensor
    base: Tensor
    width: Tensor
    stop: Tensor
    column: Tensor
    number: Tensor
    low: Tensor
    high: Tensor
    own: Tensor
    ended: Tensor

    def take(self, at: Tensor, names: tuple[str, ...] | None = None) -> NodeFields:
        """Of the nodes with numbers ``at`` along the last axis; only the fields with these names (None: all)."""
        wanted = FIELD_NAMES if names is None else names
        taken = (torch.take_along_dim(getattr(self, x), at, -1) if x in wanted else None for x in FIELD_NAMES)
        return NodeFields(*taken)


FIELD_NAMES: Final = tuple(NodeFields.__slots__)
ENTRY_FIELDS: Final = ("small", "head", "base", "column")
"""What ``entry`` reads."""
CHILD_FIELDS: Final = (*ENTRY_FIELDS, "level", "stop", "number")
"""What ``child`` reads, too."""


def upload(array: npt.NDArray[Any], device: Any) -> Tensor:
    """Flat, never empty (an index that stands for nothing may be clamped to 0), uint16 as its int16 bits."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if not len(flat):
        flat = np.zeros(1, array.dtype)
    if flat.dtype == np.uint16:
        flat = flat.view(np.int16)
    return torch.tensor(flat, device=device)


def gather(array: Tensor, at: Tensor) -> Tensor:
    """int64 values of a flat tensor; indices past its ends are clamped, their values mean nothing."""
    return array[at.clamp(0, array.shape[0] - 1)].to(torch.int64)


def popcount(words: Tensor) -> Tensor:
    """Set bits of the low 32 bits of int64 values."""
    x = words & 0xFFFFFFFF
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) & 0xFFFFFFFF) >> 24


class DeviceLayout:
    """What both layouts share. ``capacity(level, n)`` bounds the entries of n different nodes of a level."""

    def __init__(self, layout: IntervalLayout | CsrLayout, device: Any) -> None:
        self.n_levels = n_levels = len(layout.levels)
        self.n_leaves, self.depth = layout.n_leaves, layout.depth
        shape = HeadShape.of(layout.depth, layout.levels.sizes)
        slots = [*shape.slot_offset, *[0] * (n_levels + 2)][: n_levels + 2]
        self.slot_offset = torch.tensor(slots, dtype=torch.int64, device=device)
        self.sizes = torch.tensor([*layout.levels.sizes, 0, 0], dtype=torch.int64, device=device)
        self.starts = upload(layout.starts, device)
        self.lengths = None if layout.lengths is None else upload(layout.lengths, device)
        widths = [level_widths(layout, level) for level in range(n_levels)]
        self.widths = [int(kept[0]) if len(kept) else 0 for kept, _ in widths] + [0]
        self.steps = max(max(self.widths), 1).bit_length()
        self._sums = [np.concatenate([[0], np.cumsum(kept)]).tolist() for kept, _ in widths] + [[0]]
        self._nodes = [n for _, n in widths] + [0]

    def capacity(self, level: int | None, n: int, distinct: bool = True) -> int:
        """The most entries that n nodes have together, all of one level, or of any (None)."""
        if level is None:
            return max(self.capacity(each, n, distinct) for each in range(self.n_levels + 1))
        level = min(level, self.n_levels)
        if not distinct:
            return n * self.widths[level]
        n = min(n, self._nodes[level])
        sums = self._sums[level]
        kept = len(sums) - 1
        if n <= kept:
            return int(sums[n])
        return int(sums[kept] + (n - kept) * (sums[kept] - sums[kept - 1]))

    def split(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """there, level (ENDED as n_levels), count, value, ended."""
        there = nodes >= 0
        level = (nodes >> LEVEL_SHIFT) & 31
        ended = there & (level == ENDED)
        level = torch.where(there, level.clamp(max=self.n_levels), self.n_levels)
        count = torch.where(there, (nodes >> COUNT_SHIFT) & MAX_COUNT, 0)
        return there, level, count, torch.where(there, nodes & VALUE_MASK, 0), ended

    def ends_here(self, there: Tensor, level: Tensor, low: Tensor) -> Tensor:
        own = level == self.n_levels
        if self.lengths is not None:
            own = own | (gather(self.lengths, low) == level)
        return there & own

    def find(self, f: NodeFields, code: Tensor) -> tuple[Tensor, Tensor]:
        """The entry that has each code, and whether there is one."""
        low, high = torch.zeros_like(f.width), f.width
        for _ in range(self.steps):
            middle = (low + high) >> 1
            open_ = low < high
            right = open_ & (self.code(f, middle) < code)
            low = torch.where(right, middle + 1, low)
            high = torch.where(open_ & ~right, middle, high)
        at, exists = self.entry(f, low)
        return low, (low < f.width) & exists & (at == code)

    def fields(self, nodes: Tensor) -> NodeFields:
        raise NotImplementedError

    def code(self, f: NodeFields, i: Tensor) -> Tensor:
        raise NotImplementedError

    def entry(self, f: NodeFields, i: Tensor) -> tuple[Tensor, Tensor]:
        """Code of entry i < width, and whether it is a child."""
        raise NotImplementedError

    def child(self, f: NodeFields, i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Node id, first leaf and end of leaves of the child at entry i."""
        raise NotImplementedError


class DeviceInterval(DeviceLayout):
    """The layout ``interval``; see wfsa/items/interval.py for the arrays."""

    def __init__(self, layout: IntervalLayout, device: Any) -> None:
        super().__init__(layout, device)
        self.small = layout.small
        self.columns = upload(layout.columns, device)
        self.code_bits = (1 << 8 * layout.columns.dtype.itemsize) - 1
        self.indexed_words = upload(layout.indexed_words, device)
        self.indexed_before = upload(layout.indexed_before, device)
        self.first_child = upload(layout.first_child, device)

    def fields(self, nodes: Tensor) -> NodeFields:
        there, level, count, value, ended = self.split(nodes)
        small = count > 0
        head = there & ~small & (level < self.depth)
        listed = there & ~small & ~head
        low = torch.where(small, value, gather(self.starts, value))
        high = torch.where(small, value + count, gather(self.starts, value + 1))
        own = self.ends_here(there, level, low)
        skip = (own & small).to(torch.int64)
        size = self.sizes[level]
        head_base = self.slot_offset[level + 1] + (value - self.slot_offset[level]) * size
        word = gather(self.indexed_words, value >> 5) & ((1 << (value & 31)) - 1)
        number = gather(self.indexed_before, value >> 5) + popcount(word)
        begin = gather(self.first_child, number)
        list_width = gather(self.first_child, number + 1) - 1 - begin
        base = torch.where(small, value + skip, torch.where(head, head_base, begin))
        width = torch.where(small, count - skip, torch.where(head, size, torch.where(listed, list_width, 0)))
        zero = torch.zeros_like(level)
        column = (level - self.depth).clamp(0, max(self.n_levels - self.depth - 1, 0)) * self.n_leaves
        return NodeFields(
            there, level, small, head, base, width, value + count, column, zero,
            torch.where(there, low, 0), torch.where(there, high, 0), own, ended,
        )  # fmt: skip

    def _column(self, f: NodeFields, leaf: Tensor) -> Tensor:
        return gather(self.columns, f.column + leaf) & self.code_bits

    def _first_leaf(self, f: NodeFields, at: Tensor) -> Tensor:
        return torch.where(f.small, at, gather(self.starts, at))

    def code(self, f: NodeFields, i: Tensor) -> Tensor:
        return torch.where(f.head, i, self._column(f, self._first_leaf(f, f.base + i)))

    def entry(self, f: NodeFields, i: Tensor) -> tuple[Tensor, Tensor]:
        at = f.base + i
        low = self._first_leaf(f, at)
        code = torch.where(f.head, i, self._column(f, low))
        new = (i == 0) | (self._column(f, low - 1) != code)
        return code, torch.where(f.small, new, ~f.head | (gather(self.starts, at + 1) > low))

    def child(self, f: NodeFields, i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        at = f.base + i
        low = self._first_leaf(f, at)
        code = self._column(f, low)
        begin, end = low, torch.where(f.small, f.stop, low)
        for _ in range(self.small.bit_length()):  # the end of the run of one code in a small node
            middle = (begin + end) >> 1
            open_ = begin < end
            right = open_ & (self._column(f, middle) <= code)
            begin = torch.where(right, middle + 1, begin)
            end = torch.where(open_ & ~right, middle, end)
        high = torch.where(f.small, begin, gather(self.starts, at + 1))
        size, level = high - low, f.level + 1
        small = (size <= self.small) & (level >= self.depth)
        return (level << LEVEL_SHIFT) | torch.where(small, (size << COUNT_SHIFT) | low, at), low, high


class DeviceCsr(DeviceLayout):
    """The layout ``csr``; see wfsa/items/csr.py for the arrays."""

    def __init__(self, layout: CsrLayout, device: Any) -> None:
        super().__init__(layout, device)
        self.n_head = layout.n_head
        self.head_state = upload(layout.head_state, device)
        self.indptr = upload(layout.indptr, device)
        self.codes = upload(layout.codes, device)
        self.code_bits = (1 << 8 * layout.codes.dtype.itemsize) - 1
        self.leaf_low = upload(layout.leaf_low, device)
        self.leaf_high = None if layout.leaf_high is None else upload(layout.leaf_high, device)
        ends = [*[0] * layout.depth, *layout.state_offset[1:], 0]
        self.level_end = torch.tensor(ends, dtype=torch.int64, device=device)

    def _intervals(self, states: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
        low = gather(self.leaf_low, states)
        if self.leaf_high is not None:
            return low, gather(self.leaf_high, states)
        last = states + 1 == self.level_end[level]
        return low, torch.where(last, self.n_leaves, gather(self.leaf_low, states + 1))

    def fields(self, nodes: Tensor) -> NodeFields:
        there, level, count, value, ended = self.split(nodes)
        leaf = count > 0
        head = there & ~leaf & (level < self.depth)
        listed = there & ~leaf & ~head
        state_low, state_high = self._intervals(value, level)
        low = torch.where(leaf, value, torch.where(head, gather(self.starts, value), state_low))
        high = torch.where(leaf, value + count, torch.where(head, gather(self.starts, value + 1), state_high))
        size = self.sizes[level]
        number = (value - self.slot_offset[level]) * size
        begin = gather(self.indptr, value)
        base = torch.where(head, self.slot_offset[level + 1] + number, torch.where(listed, begin, 0))
        width = torch.where(head, size, torch.where(listed, gather(self.indptr, value + 1) - begin, 0))
        none = torch.zeros_like(there)
        zero = torch.zeros_like(level)
        return NodeFields(
            there, level, none, head, base, width, zero, zero, number,
            torch.where(there, low, 0), torch.where(there, high, 0), self.ends_here(there, level, low), ended,
        )  # fmt: skip

    def code(self, f: NodeFields, i: Tensor) -> Tensor:
        return torch.where(f.head, i, gather(self.codes, f.base + i) & self.code_bits)

    def entry(self, f: NodeFields, i: Tensor) -> tuple[Tensor, Tensor]:
        at = f.base + i
        return self.code(f, i), ~f.head | (gather(self.starts, at + 1) > gather(self.starts, at))

    def child(self, f: NodeFields, i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        at, level = f.base + i, f.level + 1
        state = torch.where(f.head, gather(self.head_state, f.number + i), self.n_head + at)
        tail_low, tail_high = self._intervals(state, level.clamp(max=self.n_levels))
        low = torch.where(f.head, gather(self.starts, at), tail_low)
        high = torch.where(f.head, gather(self.starts, at + 1), tail_high)
        value = torch.where(level < self.depth, at, state)
        leaf = (1 << COUNT_SHIFT) | low
        return (level << LEVEL_SHIFT) | torch.where(level == self.n_levels, leaf, value), low, high


def level_widths(layout: IntervalLayout | CsrLayout, level: int) -> tuple[npt.NDArray[np.int64], int]:
    """The largest numbers of entries among a level's nodes, falling (the first ``KEPT_WIDTHS``), and how many nodes.

    A small node counts with the layout's limit, whatever it has; the number of nodes is an upper bound.
    """
    n = layout.n_leaves
    if level < layout.depth:
        begin, end = layout.slot_offset[level : level + 2]
        present = int(np.count_nonzero(np.diff(layout.starts[begin:end])))
        return np.full(min(present, KEPT_WIDTHS), layout.levels.sizes[level], np.int64), present
    if isinstance(layout, CsrLayout):
        first, last = list(pairwise(layout.state_offset))[level - layout.depth]
        return _largest(np.diff(layout.indptr[first : last + 1])), last - first
    first, last = (layout.indexed_number_before(layout.slot_offset[at]) for at in (level, level + 1))
    least = min(layout.small, n)
    lists = np.maximum(_largest(np.diff(layout.first_child[first : last + 1]) - 1), least)
    others = np.full(min(n, KEPT_WIDTHS) - min(len(lists), n), least, np.int64)
    return np.concatenate([lists, others])[:KEPT_WIDTHS], n


def _largest(widths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if len(widths) > KEPT_WIDTHS:
        widths = np.partition(widths, len(widths) - KEPT_WIDTHS)[-KEPT_WIDTHS:]
    return np.asarray(np.sort(widths)[::-1], np.int64)


def device_layout(layout: IntervalLayout | CsrLayout, device: Any) -> DeviceInterval | DeviceCsr:
    """Copy a layout to a device."""
    return DeviceCsr(layout, device) if isinstance(layout, CsrLayout) else DeviceInterval(layout, device)
