"""What a constraint costs: to compile, by stage and by place of the schema; and along a text.

Parts of a schema are merged while it is compiled, so the time of a place cannot be read off the whole. It is measured
instead: the subschema there is compiled by itself, with what its references lead to, for the same vocabulary and in
the same mode. By then the vocabulary's caches know what the whole has made of it, so the times are of the parser and
the lexer, and smaller than a first compilation's; what counts is which place has how much of it.

The largest are looked into first, until the time is over; what is left has no number.  (What the whole takes less
without a place, :mod:`wfsa.schema_costs` measures, in more time; widths that add up are wanted here.)
"""

from __future__ import annotations

import heapq
import time
from itertools import islice
from typing import Any, Final

import wfsa
from wfsa.errors import WfsaError
from wfsa.explorer.compiled import Compiled
from wfsa.explorer.walk import Walk
from wfsa.grammar.json_schema.document import Document, draft_of, segment
from wfsa.grammar.json_schema.lowering import read_part
from wfsa.grammar.json_schema.places import pointer_of, subschemas
from wfsa.schema_advice import advice

_SECONDS: Final = 3.0
_MEMORY: Final = 1 << 30  # for a place
_MOST_PLACES: Final = 400
_MOST_CHILDREN: Final = 60
_MOST_POINTS: Final = 600


def places(compiled: Compiled, seconds: float = _SECONDS) -> dict[str, Any]:
    """A tree of places: pointer, seconds, LR states, lexer states, advice, children; {} for what is no schema."""
    with compiled.lock:
        if "places" not in compiled.kept:
            compiled.kept["places"] = _places(compiled, seconds)
        found: dict[str, Any] = compiled.kept["places"]
    return found


def _places(compiled: Compiled, seconds: float) -> dict[str, Any]:
    source = compiled.constraint.source
    if source is None:
        return {}
    until = time.perf_counter() + seconds
    try:
        document = Document(source.schema, draft_of(source.schema, source.options.draft), source.options)
        document.scan()
    except (WfsaError, RecursionError):
        return {}

    def measured(schema: Any, path: str) -> dict[str, Any]:
        node: dict[str, Any] = {"place": pointer_of(path), "children": [], "advice": list(advice(schema))}
        begin = time.perf_counter()
        try:
            grammar = read_part(document, schema, path)
            left = max(0.05, until - time.perf_counter())
            made = wfsa.compile(grammar, compiled.vocabulary.vocab, mode=compiled.asked.mode, max_seconds=left,
                                max_memory=_MEMORY)  # fmt: skip
        except (WfsaError, RecursionError) as error:
            return {**node, "error": str(error)[:200], "seconds": time.perf_counter() - begin, "lr": 0, "lexer": 0}
        stats = made.stats
        return {
            **node, "seconds": time.perf_counter() - begin, "lr": stats["lr_states"], "lexer": stats["lexer_states"],
        }  # fmt: skip

    root = measured(source.schema, "$")
    if root["seconds"] < seconds / 4:  # once more, as warm as all the others
        root = measured(source.schema, "$")
    todo: list[tuple[float, int, Any, str, dict[str, Any]]] = [(-1.0, 0, source.schema, "$", root)]
    n, complete = 1, True
    while todo:
        _, _, schema, path, node = heapq.heappop(todo)
        if not isinstance(schema, dict):
            continue
        for steps, child in islice(subschemas(schema), _MOST_CHILDREN):
            if time.perf_counter() > until or n >= _MOST_PLACES:
                complete = False
                break
            below = path + "".join(segment(step) if isinstance(step, str) else f"[{step}]" for step in steps)
            made = measured(child, below)
            made["name"] = "/".join(map(str, steps))
            node["children"].append(made)
            n += 1
            heapq.heappush(todo, (-made["seconds"], n, child, below, made))
        if not complete:
            break
    return {"root": root, "places": n, "complete": complete}


def along(walk: Walk) -> dict[str, Any]:
    """Times along the text, the largest of each stretch, and tokens left to the end."""
    n = len(walk.ids)
    step = max(1, -(-n // _MOST_POINTS))
    points = [
        [
            walk.ends[i - 1] if i else 0,
            round(max(walk.mask_us[i : i + step]), 2),
            round(max(walk.commit_us[i : i + step]), 2),
        ]
        for i in range(0, n, step)
    ]
    mask, commit = sorted(walk.mask_us), sorted(walk.commit_us)
    return {
        "tokens": n,
        "points": points,
        "mask": _quantiles(mask),
        "commit": _quantiles(commit),
        "left": walk.left_along(),
    }


def _quantiles(ordered: list[float]) -> dict[str, float]:
    if not ordered:
        return {}
    n = len(ordered) - 1
    return {
        "median": round(ordered[n // 2], 2), "p99": round(ordered[n * 99 // 100], 2), "most": round(ordered[-1], 2),
        "sum": round(sum(ordered), 1),
    }  # fmt: skip
