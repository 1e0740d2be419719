"""What a store has done and holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class StoreStats:
    """Counts since the store was opened, and what it holds now.

    memory_hits, disk_hits, remote_hits: requests answered from there.
    compiles, compile_seconds: requests that were compiled here, and what that took (lazily: until it could be used).
    waits: requests that waited for one under way for the same constraint.
    errors: compiles that ended in an error.
    published: artifacts written to the remote.
    swaps: constraints that were not expanded to the end, and were replaced by an artifact of the remote.
    damaged: files and objects that could not be read, and were made anew.
    remote_failures: requests to the remote that failed or were late.
    waiting: artifacts that wait for the remote to answer, now.
    unpublished: artifacts that were not written: dropped from memory and disk while they waited, or the store closed.
    memory_constraints, memory_bytes, disk_files, disk_bytes: what the levels hold.
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
