"""Programs that doors lead to, by name and version, for messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version


def named(package: str) -> str:
    """The name of an installed package with its version."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


@contextmanager
def known(module: str, package: str, written_for: str, remedy: str = "") -> Iterator[None]:
    """Around the imports that `module` makes from `package`.

    Raises ImportError that says which version is there and which one the module is written for, or how to get one.
    """
    try:
        yield
    except ImportError as error:
        found = named(package)
        if found == package:
            what = f"{module} needs {package} ({error}): {remedy or f'pip install {package}=={written_for}'}"
        else:
            what = f"{module} does not know this {found}: {error}; it is written for {written_for}: install that"
        raise ImportError(what, name=error.name) from error


def called_otherwise(package: str, written_for: str, how: str) -> str:
    """The message where a program calls a door in another way than the version that this one is written for."""
    return f"{named(package)} {how}, which {written_for} does not: wfsa is written for {written_for}; install that"
