"""What lies at the place of a catalogue in shards: which files are damaged, and which no version needs any more.

A store's own rules of expiry cannot do the latter: files are named by their content, so one that was written long ago
may be part of every version since.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from wfsa.errors import ArtifactError
from wfsa.items.shard_file import KINDS, MANIFEST, Manifest, read_arrays, read_manifest
from wfsa.items.shards import place_of
from wfsa.storage.places import Entry, is_half_written


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that the manifest names, and what is wrong with it."""

    file: str
    message: str


def find_damage(where: str | os.PathLike[str]) -> list[Damage]:
    """Read every file of the present version, to the last byte.

    Raises ArtifactError where the manifest itself is damaged, OSError where it is missing or the store does not answer.
    """
    place = place_of(where)
    found: list[Damage] = []
    for entry in read_manifest(place).files():
        try:
            read_arrays(place, entry)
        except ArtifactError as error:
            found.append(Damage(entry.file, str(error)))
    return found


def find_unneeded(where: str | os.PathLike[str], seconds: float, now: float | None = None) -> list[Entry]:
    """Files of earlier versions and of builds that were broken off, where nobody should be reading them any more.

    seconds    so old must a file be, and the base that came after it: longer than a build takes, and than a follower
               takes to see a new version.  (A store that does not tell times says 0, and everything is old.)

    Not to be removed while a build is at work: it may have found such a file, and not written it again.
    """
    place, now = place_of(where), time.time() if now is None else now
    listing = [entry for entry in place.listing() if "/" not in entry.name]
    manifest = read_manifest(place)
    base = _base_files(manifest)
    since = max((entry.modified for entry in listing if entry.name in base), default=0.0)
    named = {entry.file for entry in manifest.files()}
    return [
        entry
        for entry in listing
        if (is_half_written(entry, now) and _is_part(entry))
        or (_is_of_catalogue(entry) and entry.name not in named and now - max(since, entry.modified) > seconds)
    ]


def _base_files(manifest: Manifest) -> set[str]:
    return {one.file for shard in manifest.shards for one in (shard.leaves, shard.rows) if one is not None}


def _is_of_catalogue(entry: Entry) -> bool:
    digest, _, kind = entry.name.partition(".")
    return kind in KINDS and len(digest) == 32


def _is_part(entry: Entry) -> bool:
    """Of a file that a build or a publisher was writing, which are not the only ones that end in this way."""
    name = entry.name.removeprefix(".")
    digest, kind, *_ = name.split(".")
    return name.startswith(f"{MANIFEST}.") or (kind in KINDS and len(digest) == 32)


def remove(where: str | os.PathLike[str], names: list[str]) -> None:
    """Delete files; those that are gone already are passed over."""
    place = place_of(where)
    for name in names:
        place.remove(name)
