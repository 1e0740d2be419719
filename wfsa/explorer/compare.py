"""Compares a source under two options, or two vocabularies: sizes, and differences of the text and the reports."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from wfsa.explorer.cost import along
from wfsa.explorer.walk import Walk

_MOST_ENTRIES: Final = 20_000
_MOST_SHOWN: Final = 200
_SECONDS: Final = 10.0  # seconds to follow the text on each side


def compare(one: Walk, other: Walk) -> dict[str, Any]:
    """Returns facts of both sides, entries of the reports that differ, and places of the text with unequal counts."""
    for walk in (one, other):
        walk.follow(len(walk.text), _SECONDS)
    reports = [_entries(walk) for walk in (one, other)]
    differing = [
        [*place, *reports[0].get(place, ("", "")), *reports[1].get(place, ("", ""))]
        for place in dict.fromkeys([*reports[0], *reports[1]])
        if reports[0].get(place) != reports[1].get(place)
    ]
    counts = [dict(zip([0, *walk.ends[:-1]], walk.counts, strict=True)) if walk.ends else {} for walk in (one, other)]
    apart = [
        [at, counts[0][at], counts[1][at]] for at in counts[0] if at in counts[1] and counts[0][at] != counts[1][at]
    ]
    if one.compiled.vocabulary.name != other.compiled.vocabulary.name:
        apart = []  # counts of different tokens are not comparable
    return {
        "sides": [_side(walk) for walk in (one, other)],
        "same_vocabulary": one.compiled.vocabulary.name == other.compiled.vocabulary.name,
        "report": differing[:_MOST_SHOWN], "report_left_off": max(0, len(differing) - _MOST_SHOWN),
        "apart": apart[:_MOST_SHOWN], "apart_left_off": max(0, len(apart) - _MOST_SHOWN),
    }  # fmt: skip


def _side(walk: Walk) -> dict[str, Any]:
    facts = walk.compiled.facts()
    cost = along(walk)
    return {
        **facts,
        "tokens": cost["tokens"], "mask": cost["mask"], "commit": cost["commit"], "refused": walk.refused,
        "forced": sum(count == 1 for count in walk.counts), "forced_text": sum(walk.forced),
        "accepting": walk.refused is None and walk.state.is_accepting(),
    }  # fmt: skip


def _entries(walk: Walk) -> dict[tuple[str, str], tuple[str, str]]:
    report = walk.compiled.constraint.report
    entries = [] if report is None else islice(report.entries, _MOST_ENTRIES)
    # Entries about every document have no place and no keyword; the beginning of their notes distinguishes them.
    return {
        (f"{pointer}/{keyword}" if keyword else pointer, "" if keyword else note.partition(":")[0]): (status, note)
        for pointer, keyword, status, note in entries
    }
