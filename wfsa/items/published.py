"""Catalogues that are published and followed: a base in shards, and deltas of what was added and removed since.

    publish(url, sids, ids, removed=…)     one process: writes a file of the change, then the manifest that names it
    follower = follow(url, every=60)       any number of others
    items = follower.items                 the present state, immutable: for one step, or for a whole search

**A version is whole.** A delta is applied in one step; a new base is loaded beside the old one and takes its place with
all its deltas. Who holds a state keeps it: nothing changes under a step. A search that is under way may go on in its
state, or carry its beams over between two steps: ``beams = follower.items.resume(beams)``.

**What fails is tried again.** Where the manifest or a file that it names is missing, damaged or does not answer, the
follower keeps its state, says so once in the log ``wfsa``, and looks again the next time; ``error`` has the reason.

**A delta cannot fail to apply**: an id that is added replaces the item that has it, one that is removed and not there
is passed over. What is wrong with it (codes out of range, ids of another kind or given twice) the publisher is told.

**There is one publisher at a time**, and a build is one: stores have no lock. Two would begin with the same manifest,
and the later write over what the earlier published, under the same serial. So :func:`publish` looks at the manifest
right before it writes it, and again after; where another was at work, its change comes after theirs, with the next
serial. That leaves one moment, between a publisher's look and its writing: what another publishes, and finds published,
within it is lost. Followers compare deltas, not serials, so that all have what the manifest says, whatever it replaced.

A build into the same place (``ItemIndex.build_distributed``) ends the deltas, since its source has what they said; what
is published while it runs is not in it, which the log says, and is to be published again.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from wfsa.errors import ArtifactError, ItemError
from wfsa.items.build import largest_codes
from wfsa.items.index import ItemIndex
from wfsa.items.index_file import check_ids, read_id_arrays
from wfsa.items.item_ids import Ids, IdTable, kind_of, read_ids
from wfsa.items.levels import make_levels
from wfsa.items.live import Catalogue, LiveItems
from wfsa.items.rows import Rows, read_rows
from wfsa.items.shard_file import (
    DeltaEntry,
    Manifest,
    id_arrays,
    read_arrays,
    read_manifest,
    write_arrays,
    write_manifest,
)
from wfsa.items.shards import place_of
from wfsa.storage.places import Place

_log: Final = logging.getLogger("wfsa")
_GONE: Final = "removed_"
_TRIES: Final = 20


def publish(where: str | os.PathLike[str], sids: Any = None, ids: Any = None, *, removed: Any = ()) -> Manifest:
    """Publish a change of the catalogue at a folder or URL: items that are removed, then items that are added.

    sids, ids    as ``Catalogue.add`` takes them; an id that is live is replaced
    removed      ids; those that are not live are passed over

    Raises ItemError on bad codes and ids, and where others publish there without end, ArtifactError and OSError where
    there is no whole catalogue. After an error of the store the change may be there or not: to publish it again is
    right, for it then changes nothing.
    """
    place = place_of(where)
    manifest = read_manifest(place)
    for _ in range(_TRIES):
        delta = _delta(manifest, place, sids, ids, removed)
        if delta is None:
            return manifest
        seen = read_manifest(place)
        if seen == manifest:
            published = replace(manifest, serial=delta.serial, deltas=(*manifest.deltas, delta))
            write_manifest(place, published)
            seen = read_manifest(place)
            if delta in seen.deltas or seen.base != published.base:  # a build has come after it
                return published
        manifest = seen
    raise ItemError(f"{place.where}: others publish there all the time; one at a time can")


def _delta(manifest: Manifest, place: Place, sids: Any, ids: Any, removed: Any) -> DeltaEntry | None:
    """The change of this version, checked and written to the place; None where there is none."""
    levels, kind = manifest.levels, _kind(manifest)
    rows = read_rows([] if sids is None else sids, len(levels))
    new, gone = read_ids(() if ids is None else ids), read_ids(removed)
    if len(new) != len(rows):
        raise ItemError(f"{len(new)} ids for {len(rows)} items")
    if rows.n_levels != len(levels) and len(rows):
        raise ItemError(f"the rows have {rows.n_levels} levels, those of the catalogue {len(levels)}")
    for some in (new, gone):
        if len(some) and kind_of(some) != kind:
            raise ItemError(f"the items' ids are {kind}, those given {kind_of(some)}")
        if len(some) and IdTable(some).distinct != len(some):
            raise ItemError("an id is given twice")
    if not len(new) and not len(gone):
        return None
    arrays: dict[str, Any] = {_GONE + name: array for name, array in id_arrays(gone).items() if len(gone)}
    if len(rows):
        largest = largest_codes(rows, 0, 1)
        make_levels(len(levels), largest, levels.sizes, levels.offsets, levels.logits_size, levels.end_token)
        codes, lengths = rows.padded()
        arrays.update(id_arrays(new), codes=np.ascontiguousarray(codes, levels.code_dtype))
        if lengths is not None:
            if levels.end_token is None:
                raise ItemError(f"an item has {int(lengths.min())} codes: the catalogue needs an end token for such")
            arrays["lengths"] = lengths.astype(np.uint8)
    head = {"ids": kind, "base": manifest.base, "added": len(new), "removed": len(gone)}
    return DeltaEntry(write_arrays(place, "delta", arrays, head), len(gone), len(new), manifest.serial + 1)


class Follower:
    """The catalogue at a folder or URL, as it was when :meth:`refresh` last looked; made by :func:`follow`."""

    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        verify: bool = True,
        cache: Path | None = None,
        scratch: Path | None = None,
    ) -> None:
        self._place = place_of(where)
        self._options: dict[str, Any] = {"verify": verify, "cache": cache, "scratch": scratch}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: str | None = None
        manifest = read_manifest(self._place)
        self._current = (manifest, self._loaded(manifest))

    def __repr__(self) -> str:
        return f"Follower({self._place.where!r}, version {self.version}, {self.catalogue!r})"

    @property
    def catalogue(self) -> Catalogue:
        """The present catalogue, another object when there is a new base; it may be merged, not changed."""
        return self._current[1]

    @property
    def items(self) -> LiveItems:
        """The present state, immutable."""
        return self.catalogue.items

    @property
    def version(self) -> str:
        """``SERIAL-BASE+DELTAS``: what was published, which index, how many changes since."""
        manifest = self._current[0]
        return f"{manifest.serial}-{manifest.base[:12]}+{len(manifest.deltas)}"

    @property
    def error(self) -> str | None:
        """Why the last :meth:`refresh` kept the state, None where it went well."""
        return self._error

    def refresh(self) -> bool:
        """Look for a new version, and take it; whether there was one. Errors are logged, once each, not raised."""
        with self._lock:
            before = self._current[0]
            try:
                self._take(read_manifest(self._place))
                self._error = None
            except Exception as e:  # whatever a store raises: who decodes must not end for it
                said = f"{type(e).__name__}: {e}"
                if said != self._error:
                    _log.warning("%s: version %s is kept: %s", self._place.where, self.version, said)
                self._error = said
            return self._current[0] != before

    def start(self, every: float) -> Follower:
        """Refresh in a thread, ``every`` so many seconds, until :meth:`close`."""
        if every <= 0:
            raise ItemError(f"every {every} seconds")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(every,), name="wfsa-items-follow", daemon=True)
            self._thread.start()
        return self

    def close(self) -> None:
        """End the thread; the state stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, every: float) -> None:
        while not self._stop.wait(every):
            self.refresh()

    def _take(self, manifest: Manifest) -> None:
        """Apply what is new, delta by delta; or load another base aside."""
        held, catalogue = self._current
        if manifest == held:
            return
        if manifest.base != held.base or manifest.deltas[: len(held.deltas)] != held.deltas:
            self._current = (manifest, self._loaded(manifest))
            return
        for entry in manifest.deltas[len(held.deltas) :]:
            apply(catalogue, manifest, entry, self._place)
            held = replace(held, serial=entry.serial, deltas=(*held.deltas, entry))
            self._current = (held, catalogue)
        self._current = (manifest, catalogue)

    def _loaded(self, manifest: Manifest) -> Catalogue:
        _kind(manifest)
        catalogue = Catalogue(ItemIndex.of_shards(manifest, self._place, **self._options))
        for entry in manifest.deltas:
            apply(catalogue, manifest, entry, self._place)
        return catalogue


def follow(
    where: str | os.PathLike[str],
    *,
    every: float | None = None,
    verify: bool = True,
    cache: str | os.PathLike[str] | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> Follower:
    """Follow the catalogue at a folder or URL; its ids must be int, str or bytes, or row numbers.

    every           seconds between two looks, in a thread; None: only :meth:`Follower.refresh` looks
    verify, cache, scratch    as in ``ItemIndex.load``

    Raises ArtifactError, OSError where there is no whole catalogue to begin with, ItemError where it has no ids.
    """
    folders = [None if one is None else Path(one) for one in (cache, scratch)]
    found = Follower(where, verify=verify, cache=folders[0], scratch=folders[1])
    return found if every is None else found.start(every)


def apply(catalogue: Catalogue, manifest: Manifest, entry: DeltaEntry, place: Place) -> None:
    """Change a catalogue as a delta says, in one step. Raises ArtifactError, and changes nothing, on a damaged one."""
    file = read_arrays(place, entry.file)
    arrays, head = file.arrays, file.head
    try:
        if head.get("base") != manifest.base:
            raise ItemError("it was published for another base")
        kind = _kind(manifest)
        gone = _ids(kind, entry.removed, {n[len(_GONE) :]: a for n, a in arrays.items() if n.startswith(_GONE)})
        new = _ids(kind, entry.added, {n: a for n, a in arrays.items() if not n.startswith(_GONE)})
        rows: Any = None
        if entry.added:
            codes, lengths = arrays["codes"], arrays.get("lengths")
            if codes.shape != (entry.added, len(manifest.levels)):
                raise ItemError(f"codes have shape {list(codes.shape)}")
            rows = Rows(codes, None, len(manifest.levels))
            if lengths is not None:
                offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
                rows = read_rows((codes[np.arange(codes.shape[1]) < lengths[:, None]], offsets), codes.shape[1])
        catalogue.change(rows, new, gone, strict=False)
    except (KeyError, ValueError, TypeError, IndexError) as e:
        raise ArtifactError(f"{file.where} is damaged: {e}") from None


def _ids(kind: str, n: int, arrays: dict[str, Any]) -> Ids:
    if not n:
        return np.zeros(0, np.int64)
    ids = read_id_arrays(kind, n, arrays)
    assert ids is not None
    if not isinstance(ids, np.ndarray):
        check_ids(ids)
    return ids


def _kind(manifest: Manifest) -> str:
    """The kind of the ids by which items are added and removed."""
    if manifest.ids is None and manifest.rows == "sorted":
        raise ItemError("the items have neither ids nor row numbers: what changes cannot be named")
    return manifest.ids or "int"
