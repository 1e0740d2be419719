"""Names and versions of the programs that integrations serve, for error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version


def name_and_version(package: str) -> str:
    """Returns the name of a package, with its version if it is installed."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


@contextmanager
def importing(module: str, package: str, written_for: str, remedy: str = "") -> Iterator[None]:
    """Wraps the imports that `module` makes from `package`.

    Raises ImportError with the installed version and the one that the module is written for, or with `remedy` if the
    package is missing.
    """
    try:
        yield
    except ImportError as error:
        installed = name_and_version(package)
        if installed == package:
            message = f"{module} needs {package} ({error}): {remedy or f'pip install {package}=={written_for}'}"
        else:
            message = f"{module} does not know this {installed}: {error}; it is written for {written_for}: install that"
        raise ImportError(message, name=error.name) from error


def unknown_call_message(package: str, written_for: str, call: str) -> str:
    """Returns the message for a program that calls its integration in a way that `written_for` does not."""
    program = name_and_version(package)
    return f"{program} {call}, which {written_for} does not: wfsa is written for {written_for}; install that"
