"""A store of compiled constraints that a fleet shares: memory, the machine's disk, an object store, and the compiler.

    get   memory ── none ──> disk ── none ──> remote ── none ──> compile
            ^─────────────────┴─────────────────┘                  └──> disk and remote, on a thread of the store

Threads that ask for the same constraint at once wait for one of them.  Processes know nothing of each other: at worst
two compile the same constraint, and both write a whole artifact under its name, either of which is right.

A constraint is *final* when nothing is expanded on its own any more: at once under ``mode="ahead"``, at the end of the
work under "background", never under "lazy".  (A final one may still learn on use, as all under `longest` do.)

Who asks under "background" or "lazy" does not wait for the remote, since compiling lazily takes less time than most
remotes: a thread of the store looks there afterwards, at once and then now and then, and what it finds takes the
constraint's place for requests to come.  States that were begun stay with theirs.  Only where nothing is found the work
in the background begins, and what it ends in is published, unless limits closer than the usual ones left something out.

What cannot be read (damaged, foreign, half-written) is told once, and made anew.  See :mod:`.remote` for a remote that
is down or slow.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from wfsa.arguments import both_options
from wfsa.compile_options import CompileOptions
from wfsa.constraint import Constraint
from wfsa.errors import ArtifactError
from wfsa.fleet.store.artifact import OWN, name_of, pack, unpack
from wfsa.fleet.store.disk import Disk
from wfsa.fleet.store.later import Later
from wfsa.fleet.store.publisher import Publisher
from wfsa.fleet.store.remote import Remote, RemoteFailure
from wfsa.fleet.store.request import Request
from wfsa.fleet.store.stats import StoreStats
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.grammar_constraint import GrammarConstraint
from wfsa.requests import compile_kind, source_of
from wfsa.storage.regular_file import read_regular
from wfsa.vocab import Vocab, require_vocab

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from wfsa.compile_options import SchemaKeywords

_LOG: Final = logging.getLogger("wfsa.fleet.store")
_KEYS: Final = 1 << 14  # of sources whose keys are remembered
_MEASURED: Final = 1.0  # seconds between two looks at how large a constraint has grown
_FIRST_LOOK, _LONGEST_LOOK = 1.0, 300.0  # seconds between two looks for the artifact of another process

Observe = Callable[[str, float], None]


class _Work(Enum):
    """What expands a constraint on its own."""

    NONE = 0
    LATER = 1  # a thread, when the remote has been looked at
    BEGUN = 2


@dataclass(eq=False)
class _Held:
    """A constraint in memory."""

    constraint: Constraint
    n_bytes: int
    final: bool
    grows: bool  # whether its tables may still become larger
    measured: float  # when `n_bytes` was


@dataclass(slots=True)
class _Growing:
    """What is held and not final; who waits for its end does not keep it alive."""

    held: weakref.ref[_Held]
    work: _Work
    is_wide: bool  # its limits are no closer than usual

    def begin(self) -> None:
        """Expand it, if that is to come."""
        held = self.held()
        if self.work is _Work.LATER and held is not None:
            held.constraint.expand_in_background()
            self.work = _Work.BEGUN


class ConstraintStore:
    """Constraints over one vocabulary, by what they are made from; may be used by many threads.

    url             where all share: any URL of fsspec, or a folder; None: this process and its disk only
    memory_bytes    of constraints held in memory, least recently used first out
    disk_bytes      of artifacts kept on this machine; 0 for none, as is the default where `url` is on its file system
    folder          of those; None: ``wfsa/fleet/store`` below $XDG_CACHE_HOME, else below ``~/.cache``
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
        self._disk = Disk(folder or _cache_folder(), disk_bytes, OWN) if disk_bytes else None
        self._publisher = Publisher(
            self._remote, self._disk, retry_seconds, name_of=self._name_of, bytes_of=self._bytes_of, count=self._count
        )
        self._prepare = prepare or (lambda constraint: None)
        self._observe = observe or (lambda where, seconds: None)
        self._looks = Later()  # at the remote, for what somebody else has compiled
        self._lock = threading.Lock()
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._bytes = 0
        self._keys: OrderedDict[tuple[Any, ...], str] = OrderedDict()
        self._flights: dict[tuple[Any, ...], Future[Constraint]] = {}
        self._stats = StoreStats()

    # --- asking ---------------------------------------------------------------------------------------------------

    def get(
        self,
        source: Any,
        *,
        kind: str = "json",
        **options: Unpack[SchemaKeywords],
    ) -> Constraint:
        """The constraint of a source, from where it is found first, else compiled.

        kind: one of :data:`wfsa.requests.KINDS`: "json" (a schema: a dict, JSON text, a pydantic model), "regex",
        "grammar" (Lark or EBNF), "choice", "structural_tag", "json_object".
        Under ``mode="ahead"``, the default, the constraint is as complete as it gets; under "background" and "lazy" it
        may be.
        options: as for :func:`wfsa.compile_json_schema`.  Raises what the compilers raise.
        """
        of_text, of_compiling = both_options("get", options)
        return self.get_with(source, kind, of_text, of_compiling)

    def get_with(self, source: Any, kind: str, schema_options: SchemaOptions, options: CompileOptions) -> Constraint:
        """Returns the constraint of a source, as :meth:`get` does, under options that have been read already."""
        begin = time.perf_counter()
        request = Request.of(kind, source, schema_options, options)
        key = self._key(request)
        ahead = options.mode == "ahead"
        # Who has other limits may get farther than one that is under way.
        flight = key, ahead, options.max_seconds, options.max_memory, options.max_lr_states, options.max_lexer_states
        while True:
            mine: Future[Constraint] | None = None
            with self._lock:
                held = self._used(key, ahead)
                if held is None:
                    under_way = self._flights.get(flight)
                    if under_way is None:
                        mine = self._flights[flight] = Future()
                    else:
                        self._stats.waits += 1
            if held is not None:
                self._observe("memory", time.perf_counter() - begin)
                return held
            if mine is not None:
                break
            assert under_way is not None
            try:
                found = under_way.result()
            except Exception:  # what compiling raises
                raise
            except BaseException as error:
                if under_way.done() and under_way.exception() is error:
                    continue  # somebody interrupted the other one
                raise
            self._observe("wait", time.perf_counter() - begin)
            return found
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

    def get_request(
        self,
        request: Mapping[str, Any],
        *,
        tool_format: str = "hermes",
        **options: Unpack[SchemaKeywords],
    ) -> Constraint | None:
        """Return the constraint of a request's answer, as :meth:`get` does; None if the request has none.

        request, tool_format: as :func:`wfsa.compile_request` takes them.  Requests that differ in other fields, such as
            the messages, have the same constraint.
        """
        found = source_of(request, tool_format)
        if found is None:
            return None
        kind, source = found
        return self.get(source, kind=kind, **options)

    def key(self, source: Any, *, kind: str = "json", **options: Unpack[SchemaKeywords]) -> str:
        """The key under which the constraint of a source lies in every store, 64 hexadecimal digits."""
        return self._key(Request.of(kind, source, *both_options("key", options)))

    def stats(self) -> StoreStats:
        """Counts, and what is held: a copy of the present ones.  Looks through the folder on disk."""
        files, on_disk = self._disk.usage() if self._disk else (0, 0)
        with self._lock:
            return replace(
                self._stats, memory_constraints=len(self._held), memory_bytes=self._bytes, disk_files=files,
                disk_bytes=on_disk, waiting=self._publisher.n_waiting,
            )  # fmt: skip

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until what was compiled is published, for so many seconds at most; False if some is left to be done.

        A constraint that still grows, and one that waits for a remote that is down, is not waited for.
        """
        until = None if seconds is None else time.monotonic() + seconds
        looked = self._looks.flush(seconds)
        return self._publisher.flush(None if until is None else max(0.0, until - time.monotonic())) and looked

    def close(self) -> None:
        """Publish nothing more.  Constraints stay what they are, and `get` goes on compiling."""
        self._looks.close()
        self._publisher.close(last_try=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.flush()
        self._looks.close()
        self._publisher.close(last_try=error is None)

    # --- finding --------------------------------------------------------------------------------------------------

    def _key(self, request: Request) -> str:
        """That of the request; what takes time to read is remembered by a digest of its text."""
        text = request.text()
        if text is None:
            return request.key(self.vocab)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        known = (request.kind, digest, request.schema_options, request.max_terminal_states)
        try:
            hash(known)
        except TypeError:  # a registry
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
                found.set_max_grown_bytes(options.max_grown_bytes)
            self._count(**{"disk_hits" if where == "disk" else "remote_hits": 1})
            self._prepare(found)
            return self._hold(key, found, final=True).constraint, where
        begin = time.perf_counter()
        later = options.mode == "background" and self._remote is not None
        if later:
            options = replace(options, mode="lazy")
        try:
            made = compile_kind(
                request.kind, request.source, self.vocab, request.schema_options, options
            )
        except BaseException:
            self._count(errors=1)
            raise
        self._count(compiles=1, compile_seconds=time.perf_counter() - begin)
        final = options.mode == "ahead" or bool(made.stats["complete"])
        self._prepare(made)
        held = self._hold(key, made, final)
        if final:
            self._publish(key, made)
        elif not held.final:
            work = _Work.LATER if later else _Work.BEGUN if options.mode == "background" else _Work.NONE
            self._settle_later(key, _Growing(weakref.ref(held), work, _are_wide(options)), 0.0)
        return held.constraint, "compile"

    def _of_disk(self, key: str) -> Constraint | None:
        name = name_of(key, self.vocab)
        path = self._disk.path(name) if self._disk else None
        if path is None:
            return None
        try:
            return unpack(path, key, self.vocab, str(path))
        except FileNotFoundError:  # another process has made room
            return None
        except (ArtifactError, OSError) as error:
            self._tell_damaged(key, error)
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
            self._count(remote_failures=failure.asked)
            return None
        if data is None:
            return None
        try:
            found = unpack(data, key, self.vocab, f"{self._remote.url}/{name}")
        except ArtifactError as error:
            self._tell_damaged(key, error)
            return None
        if self._disk is not None:
            self._disk.put(name, data)
        return found

    def _tell_damaged(self, key: str, error: Exception) -> None:
        self._count(damaged=1)
        if self._publisher.is_damaged(key):
            _LOG.warning("made anew, since what is stored cannot be read: %s", error)

    def _count(self, **changes: float) -> None:
        with self._lock:
            for name, change in changes.items():
                setattr(self._stats, name, getattr(self._stats, name) + change)

    # --- memory ---------------------------------------------------------------------------------------------------

    def _used(self, key: str, ahead: bool) -> Constraint | None:
        """What is held under a key, used now; None where it is not final, and `ahead` asks for one.  Under the lock."""
        held = self._held.get(key)
        if held is None or (ahead and not held.final):
            return None
        self._held.move_to_end(key)
        self._stats.memory_hits += 1
        now = time.monotonic()
        if held.grows and now - held.measured > _MEASURED:
            held.measured = now
            self._looks.do(lambda: self._measure(key))
        return held.constraint

    def _hold(self, key: str, constraint: Constraint, final: bool) -> _Held:
        """Keep a constraint; returns what is kept under the key, which is a final one that is there already."""
        new = _Held(
            constraint, constraint.memory_bytes, final, not constraint.stats["complete"], time.monotonic()
        )
        with self._lock:
            before = self._held.get(key)
            if before is not None:
                if before.final and not final:
                    return before
                self._bytes -= before.n_bytes
            self._held[key] = new
            self._held.move_to_end(key)
            self._bytes += new.n_bytes
            gone = self._make_room()
        del before, gone  # constraints are released without the lock
        return new

    def _measure(self, key: str) -> None:
        """Count anew what a constraint has grown to."""
        with self._lock:
            held = self._held.get(key)
        if held is None:
            return
        n_bytes = held.constraint.memory_bytes
        with self._lock:
            if self._held.get(key) is not held:
                return
            self._bytes += n_bytes - held.n_bytes
            held.n_bytes = n_bytes
            gone = self._make_room()
        del gone

    def _make_room(self) -> list[_Held]:
        """Take out what was used longest ago, down to the limit or the last one.  Under the lock."""
        gone = []
        while self._bytes > self.memory_bytes and len(self._held) > 1:
            _, last = self._held.popitem(last=False)
            self._bytes -= last.n_bytes
            gone.append(last)
        return gone

    # --- publishing -----------------------------------------------------------------------------------------------

    def _name_of(self, key: str) -> str:
        return name_of(key, self.vocab)

    def _publish(self, key: str, constraint: Constraint) -> None:
        self._publisher.publish(key, lambda: pack(constraint, key))

    def _bytes_of(self, key: str) -> bytes | None:
        """The artifact of a final constraint that is held, or lies on disk."""
        with self._lock:
            held = self._held.get(key)
        if held is not None and held.final:
            return pack(held.constraint, key)
        path = self._disk.path(self._name_of(key)) if self._disk else None
        with contextlib.suppress(OSError):
            return read_regular(path) if path else None
        return None

    def _settle_later(self, key: str, growing: _Growing, pause: float) -> None:
        if not self._looks.do(lambda: self._settle(key, growing, pause), pause):
            growing.begin()

    def _settle(self, key: str, growing: _Growing, pause: float) -> None:
        """Of a constraint that is not final: is it now, or is there one at the remote?"""
        held = growing.held()
        with self._lock:
            if held is None or self._held.get(key) is not held:
                return
        constraint = held.constraint
        ended = growing.work is _Work.BEGUN and constraint.wait(0)
        if constraint.stats["complete"] or (ended and growing.is_wide):
            self._hold(key, constraint, final=True)
            self._publish(key, constraint)
            return
        found = self._of_remote(key)
        if found is not None:
            self._prepare(found)
            self._hold(key, found, final=True)
            self._count(swaps=1)
            return
        growing.begin()
        if self._remote is not None or (growing.work is _Work.BEGUN and not ended):
            self._settle_later(key, growing, min(max(2 * pause, _FIRST_LOOK), _LONGEST_LOOK))


def _are_wide(options: CompileOptions) -> bool:
    """Whether nothing is left out for limits that others do not have."""
    usual = CompileOptions()
    return options.max_lr_states >= usual.max_lr_states and options.max_lexer_states >= usual.max_lexer_states


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wfsa" / "store"
