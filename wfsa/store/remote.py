"""A place that may be far away, and must not hold up who asks: requests have a time, a failing remote is left alone.

A request runs on a thread of its own and is abandoned when its time is over, since a client of an object store may
hang in ways that no setting of it ends.  After a request that was late nothing is asked for `retry_seconds`; after one
that failed at once, for a thirty-second of them, then twice as long each time.  Then one request tries.
What happened is told once when the remote fails, and once when it is back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from typing import Any, Final, TypeVar

from wfsa.errors import WfsaError
from wfsa.storage.places import Place

_LOG: Final = logging.getLogger("wfsa.store")
_MOST_AT_ONCE: Final = 32  # requests under way, hanging ones among them
_FIRST_PAUSE: Final = 1 / 32  # of `retry_seconds`
T = TypeVar("T")


class RemoteFailure(WfsaError):
    """A request that failed, was late, or was not made since one failed a moment ago (`asked` is false)."""

    def __init__(self, message: str, asked: bool) -> None:
        super().__init__(message)
        self.asked = asked


class Remote:
    """A :class:`wfsa.storage.places.Place` whose methods end in time; RemoteFailure else.

    seconds: that a reader waits.  write_seconds: that a writer waits.  retry_seconds: the longest pause.
    """

    def __init__(
        self, url: str, options: dict[str, Any] | None, seconds: float, write_seconds: float, retry_seconds: float
    ) -> None:
        self.url = url
        self._seconds, self._write_seconds, self._retry_seconds = seconds, write_seconds, retry_seconds
        self._place = Place.of(url, options)
        self._place.check()
        self.is_local = self._place.folder is not None
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._pause = 0.0  # seconds without requests after the last one; 0 where that was answered
        self._asked_at = 0.0

    @property
    def is_down(self) -> bool:
        """Whether the last request failed."""
        return self._pause > 0

    def get(self, name: str) -> bytes | None:
        return self._within(self._seconds, lambda: self._place.get(name))

    def has(self, name: str) -> bool:
        return self._within(self._seconds, lambda: self._place.size(name) is not None)

    def put(self, name: str, data: bytes) -> None:
        self._within(self._write_seconds, lambda: self._place.write(name, [data]))

    def _within(self, seconds: float, request: Callable[[], T]) -> T:
        with self._lock:
            if self._pause:
                if time.monotonic() - self._asked_at < self._pause:
                    raise RemoteFailure(f"{self.url} failed a moment ago and is not asked", asked=False)
                # This one request tries, and meanwhile no other.
                self._asked_at = time.monotonic() + max(self._seconds, self._write_seconds)
        if not self._slots.acquire(blocking=False):
            raise RemoteFailure(f"{self.url}: {_MOST_AT_ONCE} requests are under way", asked=False)
        answer: Future[T] = Future()

        def work() -> None:
            try:
                answer.set_result(request())
            except BaseException as error:
                answer.set_exception(error)
            finally:
                self._slots.release()

        threading.Thread(target=work, name="wfsa-store-request", daemon=True).start()
        try:
            found = answer.result(seconds)
        except Exception as error:
            late = isinstance(error, Late) and not answer.done()
            reason = f"no answer within {seconds:g} s" if late else f"{type(error).__name__}: {error}"
            self._fail(reason, late)
            raise RemoteFailure(f"{self.url}: {reason}", asked=True) from error
        if self._pause:
            self._pause = 0.0
            _LOG.warning("the store %s answers again", self.url)
        return found

    def _fail(self, reason: str, late: bool) -> None:
        with self._lock:
            known, longer = self._pause > 0, max(2 * self._pause, _FIRST_PAUSE * self._retry_seconds)
            self._pause = self._retry_seconds if late else min(longer, self._retry_seconds)
            self._asked_at = time.monotonic()
        if not known:
            _LOG.warning("the store %s fails (%s); until it answers, constraints are compiled here", self.url, reason)
