"""Print the requirements that ``pyproject.toml`` declares, for a pip that is to install them without the project.

``python tests/requirements.py dependencies test dev`` prints ``[project.dependencies]`` and two of the extras, one
requirement a line. The Makefile installs them in a layer of their own, so that an edit of the sources never runs the
resolver again. Python 3.10 has no TOML reader in its standard library; the subset used here needs none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def requirements(names: list[str]) -> list[str]:
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    found: list[str] = []
    for name in names:
        match = re.search(rf"^{re.escape(name)} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
        if match is None:
            raise SystemExit(f"requirements: pyproject.toml has no list named {name!r}")
        found += re.findall(r'"([^"]+)"', match.group(1))
    return sorted(set(found))


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
