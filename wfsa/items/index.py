"""ItemIndex: a catalogue of sequences, and which tokens may come next in it.

    index = ItemIndex.build(sids, vocab_size=2048)       # int[N, L], ragged lists, files, an iterator of chunks
    beams = Beams.start(index, n_requests=2, width=70)
    for logits in model:                                  # float32[2, 70, V]
        beams = index.beam_step(beams, logits)
    index.item_ids(beams.nodes)                           # with filters=… where the steps had some

The index is immutable and holds arrays only (``wfsa/items/index_data.py``): a layout (``interval`` or ``csr``), the
items of each leaf, and the levels' codes. Nodes are int64 ids (``wfsa/items/nodes.py``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from wfsa.errors import ItemError
from wfsa.items import answers, node_items
from wfsa.items.backends import cython as compiled
from wfsa.items.backends import numpy as reference
from wfsa.items.beams import Beams, Normalise
from wfsa.items.build import MAX_THREADS, BuildOptions, Progress, build, default_threads
from wfsa.items.distributed import OnRay, cluster
from wfsa.items.excluding import excluding
from wfsa.items.files import ParquetColumns, is_path, open_file
from wfsa.items.filter import AnyFilter, Filters
from wfsa.items.index_data import IndexData
from wfsa.items.interval import SMALL
from wfsa.items.item_ids import ItemId, Missing
from wfsa.items.nodes import Int64s
from wfsa.items.sharded_build import Here, build_sharded
from wfsa.items.shards import is_sharded, load_base, place_of
from wfsa.storage import item_index_file
from wfsa.storage.item_shard_file import Manifest, read_manifest
from wfsa.storage.places import Place

if TYPE_CHECKING:
    from typing_extensions import Self

Backend = Literal["cython", "numpy"]
LAYOUTS: Final = ("interval", "csr")


class ItemIndex(IndexData):
    """A closed set of items, immutable; its data and look-ups are those of :class:`IndexData`. ``len`` is N."""

    __slots__ = ()

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

        sids         int[N, L]; a list of lists; ``(values, row_offsets)``; the path of a .npy or .parquet file, or
                     several tables: a list, a pattern, a folder, by path or URL (``wfsa/items/files.py``); an
                     iterator of chunks, each any of the former or an :class:`ItemChunk` with ids
        item_ids     int[N]; N strings, str or bytes, in a list or a NumPy or Arrow array; None for the row numbers; or
                     "rank": the position in the sorted order (no array kept)
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
        if is_path(sids):
            sids = open_file(sids, ParquetColumns(columns, list_column, id_column), memory, options.scratch)
        elif columns is not None or list_column is not None or id_column is not None:
            raise ItemError("columns, list_column and id_column name columns of a Parquet file; the items are no path")
        built = build(sids, None if ranked else item_ids, options)
        if ranked and built.ids is not None:
            raise ItemError('item_ids="rank", but the chunks bring ids')
        return cls._of(built)

    @classmethod
    def build_distributed(
        cls,
        source: Any,
        output: str | os.PathLike[str],
        vocab_size: int | Sequence[int] | None = None,
        *,
        address: str | None = "auto",
        shards: int | None = None,
        rows: Literal["input", "sorted"] = "input",
        offsets: Sequence[int] | None = None,
        logits_size: int | None = None,
        end_token: int | None = None,
        layout: Literal["interval", "csr"] = "interval",
        head_depth: int | None = None,
        small: int = SMALL,
        columns: Sequence[str] | None = None,
        list_column: str | None = None,
        id_column: str | None = None,
        memory: int = 1 << 30,
        concurrency: int | None = None,
        progress: Progress | None = None,
    ) -> Manifest:
        """Build in shards, on a Ray cluster, and write them to ``output``; :meth:`load` then puts them together.

        source       Parquet and Arrow files: a path or URL, a pattern, a folder, a list; or a dataset of Ray Data
        output       a folder or URL; the catalogue that is there is replaced at the end, in one step, and what did not
                     change is not written again
        vocab_size   must be given: one number, or one a level
        address      of the cluster: "auto", "host:port", "local" for one of this call's own; None: no cluster, all
                     steps in this process. A connection that there is already is used
        shards       how many, at most (None: those that are at ``output``, or what ``memory`` asks for)
        rows         "input": items have the numbers of their rows, as from :meth:`build`; "sorted": they are numbered
                     in sorted order, and no numbers are kept (``wfsa/items/shards.py``); without ids, that is rank
        memory       bytes that a task should get by with; rows of equal leading codes cannot be parted
        concurrency  tasks at once (None: one a processor)

        The others are as in :meth:`build`; they are those of the index that is put together. Raises ItemError as
        :meth:`build` does, and where there is no cluster; OSError on files that cannot be read or written.
        """
        if layout not in LAYOUTS:
            raise ItemError(f"layout={layout!r}; it is one of {', '.join(LAYOUTS)}")
        levels = {"vocab_size": vocab_size, "offsets": offsets, "logits_size": logits_size, "end_token": end_token}
        arguments: tuple[Any, ...] = (
            source,
            Place.of(output),
            ParquetColumns(columns, list_column, id_column),
            levels,
            {"name": layout, "head_depth": head_depth, "small": small},
            rows,
            shards,
            memory,
            progress or (lambda stage, fraction: None),
        )
        if address is None:
            return build_sharded(Here(), *arguments)
        with cluster(address) as ray:
            return build_sharded(OnRay(ray, concurrency), *arguments)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file; replaces an existing one in one step."""
        item_index_file.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        verify: bool = True,
        mapped: bool = False,
        cache: str | os.PathLike[str] | None = None,
        scratch: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Read a saved index into memory; or put the shards of a folder, URL or ``manifest.json`` together.

        ``verify`` reads every array once and checks every index in it; without, only shapes, types and sizes are
        checked. Raises ArtifactError on a file that is damaged, cut short, foreign or of another version.

        ``mapped=True`` maps the file of an index instead, so that processes share its pages and nothing is read before
        it is used. The file must then never be written in place (``cp`` onto it does that): a file that is cut short
        ends the process, one that is overwritten gives wrong items or ends it, too. ``save`` replaces files by a
        rename, which leaves an index that is in use as it is.

        Of shards: ``cache`` is a folder for this catalogue alone that keeps what was fetched and the index as one file,
        so that the next load fetches what is new, and one of the same version only maps that file (where only this user
        may write it; else it is read). Nothing else may write there. ``scratch`` is a
        folder for the index's arrays, in unnamed files, where memory is short.
        """
        if is_sharded(path):
            place, folders = place_of(path), [None if one is None else Path(one) for one in (cache, scratch)]
            return cls.of_shards(read_manifest(place), place, verify=verify, cache=folders[0], scratch=folders[1])
        return cls._of(item_index_file.load(path, verify=verify, mapped=mapped))

    @classmethod
    def of_shards(
        cls,
        manifest: Manifest,
        place: Place,
        *,
        verify: bool = True,
        cache: Path | None = None,
        scratch: Path | None = None,
    ) -> Self:
        """The index that a manifest's shards are, as :meth:`load` puts it together."""
        return cls._of(load_base(manifest, place, verify=verify, cache=cache, scratch=scratch))

    @classmethod
    def _of(cls, data: IndexData) -> Self:
        return cls(data.layout, data.n_items, data.item_order, data.item_indptr, data.ids, data.fingerprint)

    # --- the items of nodes -----------------------------------------------------------------------------------------

    def item_ids(self, nodes: Any, filters: Filters = None) -> list[list[ItemId]]:
        """For each of the flattened nodes the ids of the items that end there, [] where none does.

        nodes     int64[...]; the first axis is the request
        filters   those of the step: one for all requests, or one (or None) a request. Only live items are returned.
                  None returns every item of the nodes, also those that a filter of the step has refused and that share
                  a sequence with a live one

        Raises ItemError on filters of another index, or not one a request.
        """
        return node_items.item_ids(self, np.asarray(nodes, np.int64), filters)

    def first_item(self, nodes: Any, filters: Filters = None) -> npt.NDArray[Any]:
        """The id of the first live item that ends at each node, in nodes' shape; arguments as in :meth:`item_ids`.

        int64 with -1 where none ends; where ids are strings, objects with None there.
        """
        return node_items.first_item(self, np.asarray(nodes, np.int64), filters)

    def top(self, beams: Beams, k: int, filters: Filters = None) -> list[list[tuple[ItemId, float]]]:
        """For each request the best items of its beams with their scores: at most ``k`` pairs (id, score), best first.

        beams     of NumPy, or of a back end on a device
        filters   those of the steps: one for all requests, or one (or None) a request; only live items are returned

        Items that share a sequence have its score. **Ties**: the lower beam, then the lower input row. Beams at which
        no item ends give nothing. Raises ItemError on ``k`` below 1 and on filters that do not fit.
        """
        return answers.top(self, beams, k, filters)

    def ids_of_tokens(self, tokens: Any, filters: Filters = None) -> list[list[ItemId]]:
        """For each row of tokens the ids of the items that it spells, [] where it spells none.

        tokens    integers [rows, T], of NumPy, torch or JAX: what a model generated, without the prompt
        filters   one for all rows, or one (or None) a request, whose rows follow one another; only live items are
                  returned

        A row is read until an item is complete (with the end token, where the index has one); what follows, such as
        padding, is not read. A row that leaves the catalogue before, or that ends where no item ends, is []. Raises
        ItemError on anything but integers [rows, T] and on filters that do not fit.
        """
        return answers.ids_of_tokens(self, tokens, filters)

    def start(self, n_requests: int, width: int) -> Beams:
        """One valid beam a request at the root, as ``Beams.start(index, n_requests, width)``."""
        return Beams.start(self, n_requests, width)

    def excluding(
        self, exclude: Sequence[Any], filters: Filters = None, *, missing: Missing = "error"
    ) -> list[AnyFilter | None]:
        """Filters that also leave out what each request must not return, such as the items that its user has seen.

        exclude   for each request its ids, in any form that ``ItemFilter.of_ids`` takes, or None
        filters   what is live besides: one for all requests, or one (or None) a request. Its bits are shared
        missing   "error": raise ItemError on an id that no item has; "ignore": leave such ids out

        The result has one filter (or None) a request, and goes wherever filters go. Making it takes the time of the
        given ids. Raises ItemError on filters of another index, or not one a request.
        """
        return excluding(self, exclude, filters, missing)

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
        """A copy of ``logits[*nodes.shape, logits_size]`` with -inf at every token that is not allowed.

        Its type is that of the logits; float32 of torch's bfloat16.
        """
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

        ``logits``: float[B, M, logits_size], bfloat16 among them (of torch or ml_dtypes). The rules, also for ties, are
        in ``wfsa.items.beams``.
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
        if not 1 <= width < 1 << 31:
            raise ItemError(f"width must be 1 to {(1 << 31) - 1}, not {width}")
        if not 1 <= threads <= MAX_THREADS:
            raise ItemError(f"threads must be 1 to {MAX_THREADS}, not {threads}")
        logits = self._logits(logits, nodes.shape)
        if _backend(backend) is reference:
            return reference.beam_step(self, beams, logits, width, normalise, filters)
        return compiled.beam_step(self, replace(beams, nodes=nodes), logits, width, normalise, filters, threads)

    def _nodes(self, nodes: Any) -> Int64s:
        array = np.array(nodes, order="C")  # a copy: what is checked is what is used, whoever writes `nodes`
        if array.dtype != np.int64:
            raise ItemError(f"nodes are {array.dtype}, not int64")
        bad = self.core.bad_node(array)
        if bad != -1:
            raise ItemError(f"{bad} is no node of this index")
        return array

    def _logits(self, logits: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        # NumPy has no bfloat16: torch's are widened by torch, JAX's are arrays of the dtype that ml_dtypes adds.
        array = np.asarray(logits.float() if str(getattr(logits, "dtype", "")) == "torch.bfloat16" else logits)
        wide = array.dtype.char in "efd" or array.dtype.name == "bfloat16"
        if array.shape != (*shape, self.logits_size) or not wide:
            want = [*shape, self.logits_size]
            raise ItemError(f"logits are {array.dtype}{list(array.shape)}, not float32, float16 or bfloat16 {want}")
        return array


def _backend(name: Backend) -> Any:
    if name == "cython":
        return compiled
    if name == "numpy":
        return reference
    raise ItemError(f"backend={name!r}; here it is cython or numpy")
