"""``did you mean``: suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Returns ``; did you mean 'check'?`` for ``chek``; an empty text if no name is close."""
    close = difflib.get_close_matches(word, list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
