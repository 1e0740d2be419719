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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from wfsa.errors import ItemError
from wfsa.items import index_file, node_items
from wfsa.items.build import build
from wfsa.items.build_spec import BuildSpec, Progress
from wfsa.items.distributed import OnRay, cluster
from wfsa.items.excluding import excluding
from wfsa.items.files import ParquetColumns, is_path, open_file
from wfsa.items.filter import AnyFilter, Filters, check_filters
from wfsa.items.host_steps import HostSteps
from wfsa.items.index_data import IndexData
from wfsa.items.interval import SMALL
from wfsa.items.item_ids import ItemId, Missing
from wfsa.items.nodes import ENDED, LEVEL_SHIFT, Int64s, level_of
from wfsa.items.shard_file import Manifest, read_manifest
from wfsa.items.sharded_build import Here, build_sharded
from wfsa.items.shards import is_sharded, load_base, place_of
from wfsa.storage.places import Place

if TYPE_CHECKING:
    from typing_extensions import Self


class ItemIndex(IndexData, HostSteps[AnyFilter]):
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
        ranked = isinstance(item_ids, str) and item_ids == "rank"
        spec = BuildSpec(
            vocab_size=vocab_size,
            offsets=offsets,
            logits_size=logits_size,
            end_token=end_token,
            layout=layout,
            head_depth=head_depth,
            small=small,
            columns=ParquetColumns(columns, list_column, id_column),
            memory=memory,
            scratch=scratch,
            threads=threads,
            ranked=ranked,
            progress=progress,
        )
        if is_path(sids):
            sids = open_file(sids, spec.columns, memory, spec.folder)
        elif spec.columns != ParquetColumns():
            raise ItemError("columns, list_column and id_column name columns of a Parquet file; the items are no path")
        built = build(sids, None if ranked else item_ids, spec)
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
        spec = BuildSpec(
            vocab_size=vocab_size,
            offsets=offsets,
            logits_size=logits_size,
            end_token=end_token,
            layout=layout,
            head_depth=head_depth,
            small=small,
            columns=ParquetColumns(columns, list_column, id_column),
            memory=memory,
            progress=progress,
        )
        place = Place.of(output)
        if address is None:
            return build_sharded(Here(), source, place, spec, rows, shards)
        with cluster(address) as ray:
            return build_sharded(OnRay(ray, concurrency), source, place, spec, rows, shards)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file; replaces an existing one in one step."""
        index_file.save(self, path)

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
        return cls._of(index_file.load(path, verify=verify, mapped=mapped))

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

    def codes_after(self, node: int) -> tuple[Int64s, Int64s, Int64s]:
        """The codes that follow one node, rising, with the first leaf and the end of the leaves below each child."""
        _, tokens, children = self.children(np.asarray([node]))
        following = level_of(children) != ENDED
        offset = self.levels.offsets[min(node >> LEVEL_SHIFT, self.n_levels - 1)]
        return tokens[following].astype(np.int64) - offset, *self.leaves_below(children[following])

    def first_item(self, nodes: Any, filters: Filters = None) -> npt.NDArray[Any]:
        """The id of the first live item that ends at each node, in nodes' shape; arguments as in :meth:`item_ids`.

        int64 with -1 where none ends; where ids are strings, objects with None there.
        """
        return node_items.first_item(self, np.asarray(nodes, np.int64), filters)

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

    # --- what is stepped through ------------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[IndexData, ...]:
        """This index."""
        return (self,)

    @property
    def present(self) -> tuple[AnyFilter | None, ...]:
        """All of it."""
        return (None,)

    def part_filters(self, filters: Filters, n_requests: int) -> list[tuple[AnyFilter | None, ...]] | None:
        """For each request its filter; None for no filters. Raises ItemError on filters that do not fit."""
        check_filters(filters, n_requests, self.fingerprint)
        if filters is None:
            return None
        if isinstance(filters, AnyFilter):
            return [(filters,)] * n_requests
        return [(one,) for one in filters]
