"""Counts of a store, and the sizes of its levels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class StoreStats:
    """Counts since the store was opened, and the present sizes of its levels.

    memory_hits, disk_hits, remote_hits: requests answered from there.
    compiles, compile_seconds: requests that were compiled here, and the time that took (lazily: until the constraint
        could be used).
    waits: requests that waited for another one in progress for the same constraint.
    errors: compiles that ended in an error.
    published: artifacts written to the remote.
    swaps: constraints that were not fully expanded, and were replaced by an artifact of the remote.
    damaged: files and objects that could not be read, and were made again.
    remote_failures: requests to the remote that failed or were late.
    waiting: artifacts that wait for the remote to answer, at present.
    unpublished: artifacts that were not written: dropped from memory and disk while they waited, or waiting when the
        store closed.
    memory_constraints, memory_bytes, disk_files, disk_bytes: the present sizes of the levels.
    """

    memory_hits: int = 0
    disk_hits: int = 0
    remote_hits: int = 0
    compiles: int = 0
    compile_seconds: float = 0.0
    waits: int = 0
    errors: int = 0
    published: int = 0
    swaps: int = 0
    damaged: int = 0
    remote_failures: int = 0
    waiting: int = 0
    unpublished: int = 0
    memory_constraints: int = 0
    memory_bytes: int = 0
    disk_files: int = 0
    disk_bytes: int = 0
