"""A store of compiled constraints that a fleet shares: memory, the machine's disk, an object store, and the compiler.

    get   memory ── none ──> disk ── none ──> remote ── none ──> compile
            ^─────────────────┴─────────────────┘                  └──> disk and remote, on a thread of the store

Threads that ask for the same constraint at once wait for one of them.  Processes know nothing of each other: at worst
two compile the same constraint, and both write a whole artifact under its name, either of which is right.

A constraint is *final* when nothing is expanded on its own any more: at once under ``mode="ahead"``, at the end of the
work under "background", never under "lazy".  (A final one may still learn on use, as all under `longest` do.)

Who asks under "background" or "lazy" does not wait for the remote, since compiling lazily takes less time than most
remotes: the thread of the store looks there afterwards, at once and then now and then, and what it finds takes the
constraint's place for requests to come.  States that were begun stay with theirs.  Only where nothing is found the work
in the background begins, and what it ends in is published.

What cannot be read (damaged, foreign, half-written) is told once, and made anew.  See :mod:`.remote` for a remote that
is down or slow.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from wfsa.compile_options import CompileOptions
from wfsa.constraint import Constraint
from wfsa.errors import ArtifactError
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.grammar_constraint import GrammarConstraint
from wfsa.requests import compile_kind
from wfsa.store.artifact import name_of, pack, unpack
from wfsa.store.disk import Disk
from wfsa.store.later import Later
from wfsa.store.remote import Remote, RemoteFailure
from wfsa.store.request import Request
from wfsa.store.stats import StoreStats
from wfsa.vocab import Vocab, require_vocab

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from wfsa.compile_options import CompileKeywords

_LOG: Final = logging.getLogger("wfsa.store")
_KEYS: Final = 1 << 14  # of sources whose keys are remembered
_TRIES: Final = 20  # to publish an artifact
_FIRST_LOOK, _LONGEST_LOOK = 1.0, 300.0  # seconds between two looks for the artifact of another process

Observe = Callable[[str, float], None]


class _Work(Enum):
    """What expands a constraint on its own."""

    NONE = 0
    LATER = 1  # a thread, when the remote has been looked at
    BEGUN = 2


@dataclass(slots=True)
class _Held:
    """A constraint in memory."""

    constraint: Constraint
    n_bytes: int
    final: bool


class ConstraintStore:
    """Constraints over one vocabulary, by what they are made from; may be used by many threads.

    url             where all share: any URL of fsspec, or a folder; None: this process and its disk only
    memory_bytes    of constraints held in memory, least recently used first out
    disk_bytes      of artifacts kept on this machine; 0 for none, as is the default where `url` is on its file system
    folder          of those; None: ``wfsa/store`` below $XDG_CACHE_HOME, else below ``~/.cache``
    url_options     what fsspec takes beside the URL, as ``{"endpoint_url": "http://…"}``
    remote_seconds  a request to the remote may take, and twenty times that to write; then work goes on without it
    retry_seconds   without requests to a remote after one failed
    prepare         called with each constraint before it is given out for the first time
    observe         called with where a constraint came from ("memory", "disk", "remote", "compile") and the seconds

    Raises WfsaError where `url` cannot be opened or fsspec is missing, VocabError.
    """

    def __init__(
        self,
        url: str | os.PathLike[str] | None,
        vocab: Vocab,
        *,
        memory_bytes: int = 1 << 30,
        disk_bytes: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        url_options: dict[str, Any] | None = None,
        remote_seconds: float = 2.0,
        retry_seconds: float = 30.0,
        prepare: Callable[[Constraint], None] | None = None,
        observe: Observe | None = None,
    ) -> None:
        require_vocab(vocab)
        self.vocab, self.memory_bytes = vocab, memory_bytes
        self._remote = None
        if url is not None:
            self._remote = Remote(os.fspath(url), url_options, remote_seconds, 20 * remote_seconds, retry_seconds)
        if disk_bytes is None:
            disk_bytes = 4 << 30 if self._remote is not None and not self._remote.is_local else 0
        self._disk = Disk(folder or _cache_folder(), disk_bytes) if disk_bytes else None
        self._retry_seconds = retry_seconds
        self._prepare = prepare or (lambda constraint: None)
        self._observe = observe or (lambda where, seconds: None)
        self._later = Later()
        self._lock = threading.Lock()
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._bytes = 0
        self._keys: OrderedDict[tuple[Any, ...], str] = OrderedDict()
        self._flights: dict[tuple[str, bool], Future[Constraint]] = {}
        self._damaged: set[str] = set()  # names of objects to be replaced, told already
        self._stats = StoreStats()

    # --- asking ---------------------------------------------------------------------------------------------------

    def get(
        self,
        source: Any,
        options: CompileOptions | None = None,
        *,
        kind: str = "json",
        schema_options: SchemaOptions | None = None,
        **keywords: Unpack[CompileKeywords],
    ) -> Constraint:
        """The constraint of a source, from where it is found first, else compiled.

        kind: one of :data:`wfsa.requests.KINDS`: "json" (a schema: a dict, JSON text, a pydantic model), "regex",
        "grammar" (Lark or EBNF), "choice", "structural_tag", "json_object".
        Under ``mode="ahead"``, the default, the constraint is as complete as it gets; under "background" and "lazy" it
        may be.
        Keywords are fields of CompileOptions.  Raises what the compilers raise.
        """
        begin = time.perf_counter()
        options = replace(options or CompileOptions(), **keywords)
        request = Request.of(kind, source, schema_options, options)
        key = self._key(request)
        flight = key, options.mode == "ahead"
        with self._lock:
            held = self._held.get(key)
            if held is not None and (held.final or options.mode != "ahead"):
                self._held.move_to_end(key)
                self._stats.memory_hits += 1
                found: Future[Constraint] | None = None
            else:
                held, found = None, self._flights.get(flight)
                if found is None:
                    mine: Future[Constraint] = Future()
                    self._flights[flight] = mine
                else:
                    self._stats.waits += 1
        if held is not None:
            self._observe("memory", time.perf_counter() - begin)
            return held.constraint
        if found is not None:
            return found.result()
        try:
            constraint, where = self._find(request, key, options)
        except BaseException as error:
            with self._lock:
                del self._flights[flight]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._flights[flight]
        mine.set_result(constraint)
        self._observe(where, time.perf_counter() - begin)
        return constraint

    def key(
        self, source: Any, *, kind: str = "json", schema_options: SchemaOptions | None = None,
        options: CompileOptions | None = None,
    ) -> str:  # fmt: skip
        """The key under which the constraint of a source lies in every store, 64 hexadecimal digits."""
        return self._key(Request.of(kind, source, schema_options, options or CompileOptions()))

    def stats(self) -> StoreStats:
        """Counts, and what is held: a copy of the present ones.  Looks through the folder on disk."""
        files, on_disk = self._disk.usage() if self._disk else (0, 0)
        with self._lock:
            return replace(
                self._stats, memory_constraints=len(self._held), memory_bytes=self._bytes, disk_files=files,
                disk_bytes=on_disk,
            )  # fmt: skip

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until what was compiled is published, for so many seconds at most; False if some is left to be done.

        A constraint that still grows, and one that waits for a remote that is down, is not waited for.
        """
        return self._later.flush(seconds)

    def close(self) -> None:
        """Publish nothing more.  Constraints stay what they are, and `get` goes on compiling."""
        self._later.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.flush()
        self.close()

    # --- finding --------------------------------------------------------------------------------------------------

    def _key(self, request: Request) -> str:
        """That of the request; what takes time to read is remembered by its text."""
        text = request.text()
        known = (request.kind, text, request.schema_options, request.max_terminal_states)
        try:
            hash(known)
        except TypeError:  # a registry
            text = None
        if text is None:
            return request.key(self.vocab)
        with self._lock:
            key = self._keys.get(known)
            if key is not None:
                self._keys.move_to_end(known)
                return key
        key = request.key(self.vocab)
        with self._lock:
            self._keys[known] = key
            if len(self._keys) > _KEYS:
                self._keys.popitem(last=False)
        return key

    def _find(self, request: Request, key: str, options: CompileOptions) -> tuple[Constraint, str]:
        """From disk, the remote or the compiler, and from where; now held in memory."""
        found = self._of_disk(key)
        where = "disk"
        if found is None and options.mode == "ahead":
            found, where = self._of_remote(key), "remote"
        if found is not None:
            if isinstance(found, GrammarConstraint):
                found._core.set_budget(options.max_grown_bytes)
            with self._lock:
                if where == "disk":
                    self._stats.disk_hits += 1
                else:
                    self._stats.remote_hits += 1
            self._prepare(found)
            self._hold(key, found, final=True)
            return found, where
        begin = time.perf_counter()
        later = options.mode == "background" and self._remote is not None
        if later:
            options = replace(options, mode="lazy")
        try:
            made = compile_kind(
                request.kind, request.source, self.vocab, schema_options=request.schema_options, options=options
            )
        except BaseException:
            with self._lock:
                self._stats.errors += 1
            raise
        with self._lock:
            self._stats.compiles += 1
            self._stats.compile_seconds += time.perf_counter() - begin
        final = options.mode == "ahead" or bool(made.stats["complete"])
        self._prepare(made)
        self._hold(key, made, final)
        if final:
            self._later.do(lambda: self._publish(key, made))
        else:
            work = _Work.LATER if later else _Work.BEGUN if options.mode == "background" else _Work.NONE
            self._settle_later(key, made, work, 0.0)
        return made, "compile"

    def _of_disk(self, key: str) -> Constraint | None:
        name = name_of(key, self.vocab)
        path = self._disk.path(name) if self._disk else None
        if path is None:
            return None
        try:
            return unpack(path, key, self.vocab, str(path))
        except (ArtifactError, OSError) as error:
            self._tell_damaged(name, error)
            assert self._disk is not None
            self._disk.remove(name)
            return None

    def _of_remote(self, key: str) -> Constraint | None:
        """... now on disk as well; None too where the remote fails."""
        if self._remote is None:
            return None
        name = name_of(key, self.vocab)
        try:
            data = self._remote.get(name)
        except RemoteFailure as failure:
            self._count_failure(failure)
            return None
        if data is None:
            return None
        try:
            found = unpack(data, key, self.vocab, f"{self._remote.url}/{name}")
        except ArtifactError as error:
            self._tell_damaged(name, error)
            return None
        if self._disk is not None:
            self._disk.put(name, data)
        return found

    def _tell_damaged(self, name: str, error: Exception) -> None:
        with self._lock:
            self._stats.damaged += 1
            told = name in self._damaged
            self._damaged.add(name)
        if not told:
            _LOG.warning("made anew, since what is stored cannot be read: %s", error)

    def _count_failure(self, failure: RemoteFailure) -> None:
        if failure.asked:
            with self._lock:
                self._stats.remote_failures += 1

    # --- memory ---------------------------------------------------------------------------------------------------

    def _hold(self, key: str, constraint: Constraint, final: bool) -> None:
        n_bytes = constraint.memory()["total"]
        gone = []  # constraints are released without the lock
        with self._lock:
            before = self._held.pop(key, None)
            if before is not None:
                self._bytes -= before.n_bytes
                gone.append(before)
            self._held[key] = _Held(constraint, n_bytes, final)
            self._bytes += n_bytes
            while self._bytes > self.memory_bytes and len(self._held) > 1:
                _, last = self._held.popitem(last=False)
                self._bytes -= last.n_bytes
                gone.append(last)

    # --- publishing -----------------------------------------------------------------------------------------------

    def _publish(self, key: str, constraint: Constraint, tries: int = _TRIES) -> None:
        """Write the artifact to disk, and to the remote where it is not there."""
        name = name_of(key, self.vocab)
        data = pack(constraint, key)
        if self._disk is not None:
            self._disk.put(name, data)
        self._send(name, data, tries)

    def _send(self, name: str, data: bytes, tries: int) -> None:
        if self._remote is None:
            return
        try:
            if name not in self._damaged and self._remote.has(name):
                return
            self._remote.put(name, data)
        except RemoteFailure as failure:
            self._count_failure(failure)
            if tries > 1 and self._later.do(lambda: self._send(name, data, tries - 1), self._retry_seconds):
                return
            with self._lock:
                self._stats.unpublished += 1
            return
        with self._lock:
            self._damaged.discard(name)
            self._stats.published += 1

    def _settle_later(self, key: str, constraint: Constraint, work: _Work, pause: float) -> None:
        self._later.do(lambda: self._settle(key, constraint, work, pause), pause)

    def _settle(self, key: str, constraint: Constraint, work: _Work, pause: float) -> None:
        """Of a constraint that is not final: is it now, or is there one at the remote?"""
        with self._lock:
            held = self._held.get(key)
        if held is None or held.constraint is not constraint:
            return
        if constraint.stats["complete"] or (work is _Work.BEGUN and constraint.wait(0)):
            self._hold(key, constraint, final=True)
            self._publish(key, constraint)
            return
        found = self._of_remote(key)
        if found is not None:
            self._prepare(found)
            self._hold(key, found, final=True)
            with self._lock:
                self._stats.swaps += 1
            return
        if work is _Work.LATER:
            constraint.expand_in_background()
            work = _Work.BEGUN
        if self._remote is not None or work is _Work.BEGUN:
            self._settle_later(key, constraint, work, min(max(2 * pause, _FIRST_LOOK), _LONGEST_LOOK))


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wfsa" / "store"
