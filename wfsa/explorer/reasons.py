"""Why a byte cannot follow, with links: each reason leads to the place in the schema or grammar that gives it.

The words are those of `wfsa.explain`; a reason begins with a JSON pointer, and a pointer may hold anything, ": " too.
So the pointer is the longest beginning of the reason that leads somewhere in the schema.
"""

from __future__ import annotations

import re
from typing import Any, Final

from wfsa.explain import reasons
from wfsa.explorer.compiled import Compiled
from wfsa.grammar.json_schema.places import pointer_of

_TOGETHER: Final = " together with "
_MOST_EXPECTED: Final = 12
_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]{0,8})(?![0-9])")


def pointer_end(schema: Any, text: str) -> int:
    """Where the longest JSON pointer ends that `text` begins with, that leads somewhere, and before ": "; else -1.

    Each name on the way is looked for at its place, so that the time is that of reading the schema: trying each ": "
    of a text would take its square, and names are the schema's.
    """
    here, at, end = schema, 0, 0 if text.startswith(": ") else -1
    while text.startswith("/", at):
        for step in _steps(here, text, at + 1):
            if text.startswith(": ", at + 1 + len(step)):
                end = max(end, at + 1 + len(step))
        stop = text.find("/", at + 1)
        name = text[at + 1 : len(text) if stop < 0 else stop]
        if stop < 0 or name not in _steps(here, text, at + 1):
            break
        here = here[name.replace("~1", "/").replace("~0", "~")] if isinstance(here, dict) else here[int(name)]
        at = stop
    return end


def _steps(here: Any, text: str, at: int) -> list[str]:
    """The steps of a pointer from `here` that `text` has at `at`."""
    if isinstance(here, dict):
        steps = (name.replace("~", "~0").replace("/", "~1") for name in here)
        return [step for step in steps if text.startswith(step, at)]
    number = _NUMBER.match(text, at) if isinstance(here, list) else None
    return [number[0]] if number and int(number[0]) < len(here) else []


def linked(schema: Any, reason: str) -> list[dict[str, str]]:
    """A reason as parts: a place that may be "", and words."""
    out = []
    for part in reason.split(_TOGETHER):
        end = pointer_end(schema, part)
        out.append({"place": part[: max(end, 0)], "words": part[end + 2 :] if end >= 0 else part})
    return out


def terminal_place(compiled: Compiled, terminal: int) -> str:
    """Where a terminal stands: a JSON pointer, "line 3", or "" where that is not known."""
    origins = compiled.constraint.terminal_origins
    origin: str = origins[terminal] if terminal < len(origins) else ""
    if compiled.asked.kind == "json-schema" and origin.startswith("$"):
        return pointer_of(origin)
    return origin


def terminal_name(compiled: Compiled, terminal: int) -> str:
    names = compiled.constraint.terminal_names
    return str(names[terminal]) if terminal < len(names) else "the end of the text"


def expected(compiled: Compiled, state: Any) -> list[dict[str, str]]:
    """The terminals that are being read or may come next."""
    return [
        {"name": terminal_name(compiled, t), "place": terminal_place(compiled, t)}
        for t in state.expected_terminals()[:_MOST_EXPECTED]
    ]


def why(compiled: Compiled, state: Any, byte: bytes) -> dict[str, Any]:
    """Why `byte` (b"" for the end) cannot follow, and what could."""
    source = compiled.constraint.source
    found = [] if source is None else reasons(source, state.text(), byte)
    allowed = state.next_bytes()
    told = [linked(source.schema, reason) for reason in found]
    if byte and byte in allowed:
        told = [[{"place": "", "words": "no token of the vocabulary spells what stands here"}]]
    return {"reasons": told, "expected": expected(compiled, state), "bytes": allowed.hex()}
