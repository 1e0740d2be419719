"""Connects to a Ray cluster, for all packages that work on one: builds of item catalogues, and the farm.

If nothing answers, Ray itself retries for minutes, so a connection to the address is tried first.
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

_SECONDS: Final = 20.0  # most seconds to wait for an answer at an address


@contextmanager
def cluster(address: str | None, error: type[WfsaError] = WfsaError) -> Iterator[Any]:
    """Yield the module ``ray``, connected to `address` ("auto", "host:port", "local" for a cluster of this call).

    An existing connection is used and kept; one made here is closed. Raises `error` without Ray, or if nothing answers.
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
