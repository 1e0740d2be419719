"""The way to a Ray cluster, one for all that work on it: builds of item catalogues, and the farm.

Where nothing answers Ray itself goes on trying for minutes, so the address is asked first whether anybody listens.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from wfsa.errors import WfsaError
from wfsa.installing import how_to_install

_SECONDS: Final = 20.0  # for an answer at an address


@contextmanager
def cluster(address: str | None, error: type[WfsaError] = WfsaError) -> Iterator[Any]:
    """The module ``ray``, connected: to `address` ("auto", "host:port", "local" for one of this call), or as it is.

    A connection that was there stays; one made here ends.  Raises `error` without Ray, or where nothing answers.
    """
    try:
        import ray
    except ImportError:
        raise error(f"work on a cluster needs Ray: {how_to_install('ray')}") from None
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"include_dashboard": False} if address in (None, "local") else {}
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if colon and port.isdigit() and "/" not in host:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **options)
    except (OSError, ValueError, RuntimeError) as e:
        raise error(f"there is no Ray cluster at {address!r}: {e}") from None
    try:
        yield ray
    finally:
        ray.shutdown()
