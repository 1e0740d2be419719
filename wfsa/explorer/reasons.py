"""Why a byte cannot follow, with links: each reason leads to the place in the schema or grammar that gives it.

The words are those of `Constraint.reasons`; a reason begins with a JSON pointer, and a pointer may hold anything, ": "
too.  So the pointer is the longest beginning of the reason that leads somewhere in the schema.

A grammar gives no such words: there it is told which terminals the byte would begin, and in which rules they stand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from wfsa.explorer.compiled import Compiled
from wfsa.explorer.terminals import Terminals
from wfsa.grammar.json_schema.places import pointer_of

_TOGETHER: Final = " together with "
END_NAME: Final = "the end of the text"
_MOST_EXPECTED: Final = 12
_MOST_IGNORED: Final = 200  # bytes of terminals that are ignored, one behind the other
_MOST_OUT_OF_PLACE: Final = 3
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


def terminals_of(compiled: Compiled) -> Terminals | None:
    """Of a grammar; None for a JSON Schema, whose terminals have names and places of their own."""
    if compiled.asked.kind == "json-schema":
        return None
    found: Terminals | None = compiled.kept.get("terminals")
    if found is None:
        found = compiled.kept["terminals"] = Terminals(compiled.grammar)
    return found


def terminal_place(compiled: Compiled, terminal: int) -> str:
    """Where a terminal stands, or else the rule that it stands in: a JSON pointer, "line 3", "3:1", "the pattern"; or
    "" where that is not known."""
    origins = compiled.constraint.terminal_origins
    origin: str = origins[terminal] if terminal < len(origins) else ""
    of = terminals_of(compiled)
    if of is not None:
        return origin or of.rule(terminal)[1]
    return pointer_of(origin) if origin.startswith("$") else origin


def terminal_name(compiled: Compiled, terminal: int) -> str:
    names = compiled.constraint.terminal_names
    if terminal >= len(names):
        return END_NAME
    of = terminals_of(compiled)
    return str(names[terminal]) if of is None else of.name(terminal)


def only_ignored(compiled: Compiled, terminals: Sequence[int]) -> bool:
    """Whether none of them but the end stands in a rule."""
    of, end = terminals_of(compiled), len(compiled.constraint.terminal_names)
    return of is not None and bool(of.ignored) and all(t in of.ignored or t == end for t in terminals)


def expected_terminals(compiled: Compiled, state: Any) -> tuple[int, ...]:
    """The terminals that are being read or may come next.

    Where one is read that is ignored, the engine tells that one only. What may come behind it is what might have come
    before it, as far as the bytes that are allowed begin it.
    """
    found = tuple(state.expected_terminals())
    of = terminals_of(compiled)
    if of is None or not only_ignored(compiled, found):
        return found
    text = state.text()
    for n in range(1, min(len(text), _MOST_IGNORED) + 1):
        probe = compiled.constraint.start()
        if not probe.commit_bytes(text[:-n]):
            break
        before = probe.expected_terminals()
        if not only_ignored(compiled, before):
            begun = [of.begun_by(byte) for byte in set(state.next_bytes()) - of.continued_by(text[-n:])]
            return tuple(sorted({*found, *set(before).intersection(set().union(*begun))}))
    return found


def expected(compiled: Compiled, state: Any) -> list[dict[str, str]]:
    """... with their places."""
    return [
        {"name": terminal_name(compiled, t), "place": terminal_place(compiled, t)}
        for t in expected_terminals(compiled, state)[:_MOST_EXPECTED]
    ]


def why(compiled: Compiled, state: Any, byte: bytes) -> dict[str, Any]:
    """Why `byte` (b"" for the end) cannot follow, and what could."""
    source = compiled.constraint.source
    allowed = state.next_bytes()
    if byte and byte in allowed:
        told = [[{"place": "", "words": "no token of the vocabulary spells what stands here"}]]
    elif source is not None:
        told = [linked(source.schema, reason) for reason in compiled.constraint.reasons(state.text(), byte)]
    else:
        told = _out_of_place(compiled, state, byte)
    return {"reasons": told, "expected": expected(compiled, state), "bytes": allowed.hex()}


def _out_of_place(compiled: Compiled, state: Any, byte: bytes) -> list[list[dict[str, str]]]:
    """The terminals of a grammar that begin with a byte that is refused; else the one that is read."""
    of = terminals_of(compiled)
    if of is None or not byte:
        return []
    out: dict[tuple[str, str], str] = {}  # of each rule one
    for t in sorted(of.begun_by(byte[0]) - of.ignored):
        out.setdefault((terminal_place(compiled, t), of.in_rule(t)), terminal_name(compiled, t))
    told = [
        [{"place": place, "words": f"{name}{in_rule} cannot stand here"}]
        for (place, in_rule), name in islice(out.items(), _MOST_OUT_OF_PLACE)
    ]
    if len(out) > _MOST_OUT_OF_PLACE:
        more = len(out) - _MOST_OUT_OF_PLACE
        told.append([{"place": "", "words": f"nor can what begins like this in {more} other places"}])
    if told:
        return told
    read = [t for t in expected_terminals(compiled, state) if t < len(compiled.constraint.terminal_names)]
    if len(read) == 1:
        words = f"{terminal_name(compiled, read[0])} does not go on like this"
        return [[{"place": terminal_place(compiled, read[0]), "words": words}]]
    return [[{"place": "", "words": "no terminal begins or goes on like this"}]]
