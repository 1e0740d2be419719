"""Writes Markdown tables, and the two files of a bench: ``results/NAME.md`` and ``results/NAME.jsonl``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def number(value: float | int | None, unit: str = "") -> str:
    """Format a number with three significant digits and no exponent; None and NaN become an en dash."""
    if value is None or value != value:
        return "–"
    if isinstance(value, int):
        return f"{value:,}{unit}"
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2
    return f"{value:,.{digits}f}{unit}"


def several(values: Iterable[float | int | None]) -> str:
    return " / ".join(number(value) for value in values)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def facts(machine: dict[str, str]) -> str:
    return "\n".join(["| | |", "| --- | --- |", *(f"| {key} | {cell(value)} |" for key, value in machine.items())])


def write(folder: Path, name: str, sections: Iterable[str], lines: Iterable[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as out:
        for line in lines:
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    path = folder / f"{name}.md"
    path.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return path
