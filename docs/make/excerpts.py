"""Tables of recorded results in pages of docs/: copied by ``python docs/make/site_plots.py``, never typed.

In a page stand two comments, and what is between them is written::

    <!-- excerpt: corpus.md | Verdicts -->            the first table under that heading of benches/results/corpus.md
    <!-- excerpt: vllm.md | 200 real | 1 2 4 -->      ... a heading that begins so, these columns only, counted from 1
    <!-- end -->

Below the table its file is named, with the day and the commit.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benches.markdown import RESULTS  # noqa: E402

_PLACE = re.compile(
    r"(<!-- excerpt: (?P<file>[\w-]+\.md) \| (?P<heading>[^|>]+?)(?: \| (?P<columns>[\d ]+))? -->\n).*?(<!-- end -->)",
    re.DOTALL,
)
_CELLS = re.compile(r"(?<!\\)\|")


def pages() -> list[Path]:
    """Those that have such places."""
    found = [path for path in sorted((ROOT / "docs").rglob("*.md")) if _PLACE.search(path.read_text(encoding="utf-8"))]
    assert found, "no page has an excerpt"
    return found


def written(page: Path) -> str:
    """The page with its tables written anew."""
    results = "../" * len(page.relative_to(ROOT).parent.parts) + "benches/results/"

    def excerpt(place: re.Match[str]) -> str:
        file, heading = place["file"], place["heading"]
        columns = [int(number) - 1 for number in (place["columns"] or "").split()]
        text = (RESULTS / file).read_text(encoding="utf-8")
        facts = dict(re.findall(r"^\| (date|commit) \| (.+?) \|$", text, re.MULTILINE))
        told = f"{facts['date'][:10]}, commit {facts['commit']}"
        source = f"*From [benches/results/{file}]({results}{file}): {told}.*"
        return f"{place[1]}\n{table_under(text, heading, columns)}\n\n{source}\n\n{place[5]}"

    return _PLACE.sub(excerpt, page.read_text(encoding="utf-8"))


def table_under(text: str, heading: str, columns: list[int]) -> str:
    section = re.search(rf"^#+ {re.escape(heading)}.*?(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, f"no section begins with {heading!r}"
    tables = re.findall(r"(?:^\|.*\|\n)+", section.group()[section.group().index("\n") :], re.MULTILINE)
    tables = [found for found in tables if not found.startswith("| | |\n")]  # the facts about machine and run
    assert tables, f"no table under {heading!r}"
    lines = tables[0].splitlines()
    if not columns:
        return "\n".join(lines)
    rows = [[cell.strip() for cell in _CELLS.split(line)[1:-1]] for line in lines]
    return "\n".join("| " + " | ".join(row[column] for column in columns) + " |" for row in rows)
