"""ItemIndex: a catalogue of sequences, and which tokens may come next in it.

    index = ItemIndex.build(sids, vocab_size=2048)       # int[N, L], ragged lists, files, an iterator of chunks
    beams = Beams.start(index, n_requests=2, width=70)
    for logits in model:                                  # float32[2, 70, V]
        beams = index.beam_step(beams, logits)
    index.item_ids(beams.nodes)

The index is immutable and holds arrays only: a layout (``interval`` or ``csr``), the items of each leaf, and the
levels' codes. Nodes are int64 ids (``wfsa/items/nodes.py``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from wfsa._ext.items_step import StepCore
from wfsa.errors import ItemError
from wfsa.items import cython_backend, numpy_backend
from wfsa.items.beams import Beams, Normalise
from wfsa.items.build import BuildOptions, Progress, build, default_threads
from wfsa.items.csr import CsrLayout
from wfsa.items.files import ParquetColumns, open_file
from wfsa.items.filter import Filters
from wfsa.items.interval import SMALL, IntervalLayout
from wfsa.items.levels import Levels
from wfsa.items.nodes import Int64s

if TYPE_CHECKING:
    from typing_extensions import Self

Backend = Literal["cython", "numpy"]
Layout = IntervalLayout | CsrLayout
LAYOUTS: Final = ("interval", "csr")


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """N items over U distinct sequences (leaves) of up to L codes.

    layout       the trie
    item_order   offset[N]: the items' rows, in the order of build's input, sorted by leaf and then by row;
                 None when items are named by their rank in the sorted order (``item_ids="rank"``)
    item_indptr  offset[U + 1]: the items of leaf u are ``item_order[item_indptr[u]:item_indptr[u + 1]]``; None when
                 every leaf has one item
    ids          int64[N]: the caller's id of each row, None when that is the row number
    """

    layout: Layout
    n_items: int
    item_order: npt.NDArray[Any] | None
    item_indptr: npt.NDArray[Any] | None
    ids: npt.NDArray[np.int64] | None
    core: StepCore = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "core", cython_backend.make_core(self.layout))

    # --- making and keeping ---------------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        sids: Any,
        item_ids: Any = None,
        vocab_size: int | Sequence[int] | None = None,
        *,
        offsets: Sequence[int] | None = None,
        logits_size: int | None = None,
        end_token: int | None = None,
        layout: Literal["interval", "csr"] = "interval",
        head_depth: int | None = None,
        small: int = SMALL,
        columns: Sequence[str] | None = None,
        list_column: str | None = None,
        id_column: str | None = None,
        memory: int = 2 << 30,
        scratch: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Build from rows in any order; equal rows share a leaf.

        sids         int[N, L]; a list of lists; ``(values, row_offsets)``; the path of a .npy or .parquet file; an
                     iterator of chunks, each any of the former or an :class:`ItemChunk` with ids
        item_ids     int[N], or None for the row numbers, or "rank": the position in the sorted order (no array kept)
        vocab_size   codes a level: one number, or one a level; None: what is seen
        offsets      first token of each level (``token = offsets[l] + code``); None: 0
        logits_size  entries of the model's logits; None: what the tokens need
        end_token    the token that closes an item; needed by beam_step where an item is a prefix of another
        head_depth   levels in the dense head; None: chosen by size
        small        nodes of up to this many leaves (1 .. 1023) have no child list (layout interval)
        columns, list_column, id_column    of a Parquet file: the integer columns of codes, one a level; or the one
                     column of lists of codes; and that of the items' ids. What could be meant in several ways must be
                     named (``wfsa/items/files.py``)
        memory       bytes for the rows and records of one sorted run; more is merged from runs in ``scratch``, a folder
                     (None: the system's for temporary files), where the index's arrays then lie, too
        threads      None: one a core, at most 16
        progress     called as progress(stage, fraction) now and then

        Raises ItemError on codes out of range, empty rows, wrong shapes; LimitError on a head that is too large.
        """
        if layout not in LAYOUTS:
            raise ItemError(f"layout={layout!r}; it is one of {', '.join(LAYOUTS)}")
        ranked = isinstance(item_ids, str) and item_ids == "rank"
        options = BuildOptions(
            vocab_size=vocab_size,
            offsets=offsets,
            logits_size=logits_size,
            end_token=end_token,
            layout=layout,
            head_depth=head_depth,
            small=small,
            threads=default_threads() if threads is None else threads,
            memory=memory,
            scratch=Path(tempfile.gettempdir() if scratch is None else scratch),
            ranked=ranked,
            progress=progress or (lambda stage, fraction: None),
        )
        if isinstance(sids, (str, os.PathLike)):
            sids = open_file(sids, ParquetColumns(columns, list_column, id_column))
        elif columns is not None or list_column is not None or id_column is not None:
            raise ItemError("columns, list_column and id_column name columns of a Parquet file; the items are no path")
        built = build(sids, None if ranked else item_ids, options)
        if ranked and built.ids is not None:
            raise ItemError('item_ids="rank", but the chunks bring ids')
        return cls(built.layout, built.n_items, built.order, built.indptr, built.ids)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file; replaces an existing one in one step."""
        from wfsa.storage.item_index_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> ItemIndex:
        """Map a saved index into memory.

        ``verify`` reads every array once and checks every index in it; without, only shapes, types and sizes are
        checked. Raises ArtifactError on a file that is damaged, cut short, foreign or of another version.
        """
        from wfsa.storage.item_index_file import load

        return load(path, verify=verify)

    # --- what is in it --------------------------------------------------------------------------------------------

    @property
    def levels(self) -> Levels:
        return self.layout.levels

    @property
    def n_levels(self) -> int:
        return len(self.layout.levels)

    @property
    def n_leaves(self) -> int:
        """Distinct sequences."""
        return self.layout.n_leaves

    @property
    def logits_size(self) -> int:
        return self.layout.levels.logits_size

    @property
    def root(self) -> int:
        """The node of the empty prefix; -1 without items."""
        return self.layout.root

    @property
    def has_prefix_items(self) -> bool:
        """Whether some item is a proper prefix of another."""
        return self.layout.has_prefix_items

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Every array by name, the layout's and the items'; what a device back end uploads and a file holds."""
        items = {"item_order": self.item_order, "item_indptr": self.item_indptr, "ids": self.ids}
        return {**self.layout.arrays(), **{name: array for name, array in items.items() if array is not None}}

    def memory(self) -> dict[str, int]:
        """Bytes by array; ``layout`` is the trie alone, ``items`` what names the items, ``total`` both."""
        parts = {name: int(array.nbytes) for name, array in self.arrays().items()}
        items = sum(parts.get(name, 0) for name in ("item_order", "item_indptr", "ids"))
        return {**parts, "layout": sum(parts.values()) - items, "items": items, "total": sum(parts.values())}

    def item_ids(self, nodes: Int64s) -> list[list[int]]:
        """For each of the flattened nodes the ids of the items that end there, [] where none does."""
        leaves = self.layout.terminals(np.asarray(nodes, np.int64).reshape(-1))
        out: list[list[int]] = []
        for leaf in leaves.tolist():
            out.append([] if leaf < 0 else self.leaf_items(leaf).tolist())
        return out

    def leaf_items(self, leaf: int) -> Int64s:
        """Ids of the items of a leaf, by input row."""
        begin, end = leaf, leaf + 1
        if self.item_indptr is not None:
            begin, end = int(self.item_indptr[leaf]), int(self.item_indptr[leaf + 1])
        rows = np.arange(begin, end) if self.item_order is None else self.item_order[begin:end].astype(np.int64)
        return rows if self.ids is None else self.ids[rows]

    def first_item(self, nodes: Int64s) -> Int64s:
        """The id of the first item that ends at each node, -1 where none does; nodes' shape."""
        leaves = self.layout.terminals(nodes)
        if not self.n_leaves:
            return leaves
        at = np.maximum(leaves, 0)
        if self.item_indptr is not None:
            at = self.item_indptr[at].astype(np.int64)
        rows = at if self.item_order is None else self.item_order[at].astype(np.int64)
        return np.where(leaves < 0, -1, rows if self.ids is None else self.ids[rows])

    def n_below(self, nodes: Int64s) -> Int64s:
        """How many leaves are below each node."""
        low, high = self.layout.intervals(nodes)
        return high - low

    def rows_of_ids(self, ids: Any) -> Int64s:
        """Input rows of item ids, in their order; every row with an id when several have it.

        Raises ItemError on an id that no item has. Sorts the ids once a call: O(N log N) where the caller gave ids.
        """
        wanted = np.asarray(ids)
        if wanted.ndim != 1 or (wanted.dtype.kind not in "iu" and wanted.size):
            raise ItemError(f"item ids are {wanted.dtype}{list(wanted.shape)}, not integers [n]")
        wanted = wanted.astype(np.int64)
        if self.ids is None:
            unknown = (wanted < 0) | (wanted >= self.n_items)
            if unknown.any():
                raise ItemError(f"no item has the id {int(wanted[unknown][0])}; ids are 0 .. {self.n_items - 1}")
            return wanted
        order = np.argsort(self.ids, kind="stable")
        sorted_ids = self.ids[order]
        low, high = np.searchsorted(sorted_ids, wanted, "left"), np.searchsorted(sorted_ids, wanted, "right")
        if (low == high).any():
            raise ItemError(f"no item has the id {int(wanted[low == high][0])}")
        counts = high - low
        steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        rows: Int64s = order[np.repeat(low, counts) + steps]
        return rows

    # --- the step -------------------------------------------------------------------------------------------------

    def allowed(self, nodes: Any, filters: Filters = None, *, backend: Backend = "cython") -> npt.NDArray[np.int32]:
        """Which tokens may come next: packed int32[*nodes.shape, ceil(logits_size / 32)]."""
        masks: npt.NDArray[np.int32] = _backend(backend).allowed(self, self._nodes(nodes), filters)
        return masks

    def children(
        self, nodes: Any, filters: Filters = None, *, backend: Backend = "cython"
    ) -> tuple[Int64s, npt.NDArray[np.int32], Int64s]:
        """Next tokens and nodes of the flattened nodes: indptr int64[n + 1], tokens int32, nodes int64."""
        found: tuple[Int64s, npt.NDArray[np.int32], Int64s] = _backend(backend).children(
            self, self._nodes(nodes), filters
        )
        return found

    def mask_logits(
        self, logits: Any, nodes: Any, filters: Filters = None, *, backend: Backend = "cython"
    ) -> npt.NDArray[Any]:
        """A copy of ``logits[*nodes.shape, logits_size]`` with -inf at every token that is not allowed."""
        nodes = self._nodes(nodes)
        masked: npt.NDArray[Any] = _backend(backend).mask_logits(
            self, self._logits(logits, nodes.shape), nodes, filters
        )
        return masked

    def advance(self, nodes: Any, tokens: Any, filters: Filters = None, *, backend: Backend = "cython") -> Int64s:
        """The nodes after one token each; -1 where the token is not allowed."""
        nodes, tokens = self._nodes(nodes), np.asarray(tokens)
        if tokens.shape != nodes.shape or tokens.dtype.kind not in "iu":
            raise ItemError(f"tokens are {tokens.dtype}{list(tokens.shape)}, not integers {list(nodes.shape)}")
        following: Int64s = _backend(backend).advance(self, nodes, tokens, filters)
        return following

    def beam_step(
        self,
        beams: Beams,
        logits: Any,
        *,
        width: int | None = None,
        normalise: Normalise = "full",
        filters: Filters = None,
        backend: Backend = "cython",
        threads: int = 1,
    ) -> Beams:
        """Log-softmax, mask, cumulative scores, exact top ``width`` (default: as many) a request, advance.

        ``logits``: float[B, M, logits_size]. The rules, also for ties, are in ``wfsa.items.beams``.
        ``threads`` share out the requests; the back end numpy uses one.
        """
        nodes = self._nodes(beams.nodes)
        if nodes.ndim != 2:
            raise ItemError(f"beams have nodes of shape {list(nodes.shape)}, not [B, M]")
        for name in ("scores", "valid", "sequences"):
            shape = np.shape(getattr(beams, name))
            if shape[:2] != nodes.shape or len(shape) != 2 + (name == "sequences"):
                raise ItemError(f"beams have {name} of shape {list(shape)} for nodes of shape {list(nodes.shape)}")
        if self.has_prefix_items and self.levels.end_token is None:
            raise ItemError("an item is a prefix of another: beam_step needs an index built with an end_token")
        width = nodes.shape[1] if width is None else width
        if width < 1:
            raise ItemError(f"{width} beams")
        logits = self._logits(logits, nodes.shape)
        if _backend(backend) is numpy_backend:
            return numpy_backend.beam_step(self, beams, logits, width, normalise, filters)
        return cython_backend.beam_step(self, beams, logits, width, normalise, filters, threads)

    def _nodes(self, nodes: Any) -> Int64s:
        array = np.asarray(nodes)
        if array.dtype != np.int64:
            raise ItemError(f"nodes are {array.dtype}, not int64")
        array = np.ascontiguousarray(array).reshape(array.shape)
        bad = self.core.bad_node(array)
        if bad != -1:
            raise ItemError(f"{bad} is no node of this index")
        return array

    def _logits(self, logits: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        array = np.asarray(logits)
        if array.shape != (*shape, self.logits_size) or array.dtype.char not in "efd":
            want = [*shape, self.logits_size]
            raise ItemError(f"logits are {array.dtype}{list(array.shape)}, not float32 or float16 {want}")
        return array


def _backend(name: Backend) -> Any:
    if name == "cython":
        return cython_backend
    if name == "numpy":
        return numpy_backend
    raise ItemError(f"backend={name!r}; here it is cython or numpy")
