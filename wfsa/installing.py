"""What only an extra brings: how it is imported, and how it is installed, for messages.

What changes when wfsa is published is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def how_to_install(extra: str) -> str:
    """The command that installs wfsa with one of its extras, for the message of an error.

    wfsa is in no package index, so pip is given a clone or a wheel: docs/installing.md.
    """
    return f"in a clone of wfsa: pip install '.[{extra}]'; with a wheel: pip install 'PATH_OF_THE_WHEEL[{extra}]'"


@contextmanager
def needs(module: str, extra: str) -> Iterator[None]:
    """Around the imports of ``module`` that the extra of wfsa makes possible. Raises ImportError."""
    try:
        yield
    except ImportError as error:
        missing = error.name or str(error)
        raise ImportError(f"{module} needs {missing}: {how_to_install(extra)}", name=error.name) from error
