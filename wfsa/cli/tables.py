"""Tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from wfsa.cli import readable, terminal


def print_table(table: Any) -> None:
    """A rich table; wide where there is no terminal, so that nothing is cut when the output goes to a file."""
    terminal.console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)


def cell(text: str) -> Any:
    """A text as it stands: it may hold what rich takes for markup, and what a terminal obeys."""
    from rich.text import Text

    return Text(readable.printable(text))


def facts_table(rows: Mapping[str, object]) -> Any:
    """Names and values; a nested mapping is indented below its name, ``_`` in names is a blank."""
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)

    def add(values: Mapping[str, object], indent: str) -> None:
        for name, value in values.items():
            label = indent + str(name).replace("_", " ")
            if isinstance(value, Mapping):
                table.add_row(label, "")
                add(value, indent + "  ")
            else:
                table.add_row(label, cell(_shown(value)))

    add(rows, "")
    return table


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def report_table(entries: Iterable[Any]) -> Any:
    """What of a schema is enforced: entries of place, keyword, status and note."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("place", "keyword", "status", "what is refused, or why"):
        table.add_column(title, overflow="fold")
    for pointer, keyword, status, note in entries:
        place = pointer or ("(root)" if keyword else "(every document)")
        table.add_row(*map(cell, (place, keyword, status, note)))
    return table
