"""Importing what only an extra brings: without it, the error says which module wants it and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wfsa.installing import how_to_install


@contextmanager
def needs(module: str, extra: str) -> Iterator[None]:
    """Around the imports of ``module`` that the extra of wfsa makes possible. Raises ImportError."""
    try:
        yield
    except ImportError as error:
        missing = error.name or str(error)
        raise ImportError(f"{module} needs {missing}: {how_to_install(extra)}", name=error.name) from error
