"""Standard output and error: whether they are read, and take colours."""

from __future__ import annotations

import os
import sys
from typing import Any


def open_streams() -> None:
    """A stream that the caller has closed (``>&-``) is None in Python, which nothing here expects: give it nowhere."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for as long as the process lasts
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def drop_output() -> None:
    """What is not written yet never will be: Python must not complain at exit that it cannot flush."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def say(line: str) -> None:
    """Print; where nobody reads it any more (``| head``) go on all the same, since the exit code is the verdict."""
    try:
        print(line)
    except BrokenPipeError:
        drop_output()


def say_error(message: str) -> None:
    """A line on standard error, if anybody reads it."""
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        pass


def colours() -> bool:
    """Whether standard output is a terminal that takes colours, and the user does (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def console(**options: Any) -> Any:
    """A rich console that leaves a broken pipe to `main`; rich itself would end the process, with exit code 1."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            raise  # it is called where a BrokenPipeError is caught

    return Ours(**options)
