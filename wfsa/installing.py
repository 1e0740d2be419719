"""How wfsa is installed with an extra, for messages. What changes when wfsa is published is here."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The command that installs wfsa with one of its extras, for the message of an error.

    wfsa is in no package index, so pip is given a clone or a wheel: docs/installing.md.
    """
    return f"in a clone of wfsa: pip install '.[{extra}]'; with a wheel: pip install 'PATH_OF_THE_WHEEL[{extra}]'"
