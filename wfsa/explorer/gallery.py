"""Small examples to begin with: schemas and grammars, each with a text that shows something."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def examples() -> list[dict[str, Any]]:
    """Title, kind, source and text of each."""
    text = resources.files("wfsa.explorer").joinpath("gallery.json").read_text("utf-8")
    found: list[dict[str, Any]] = json.loads(text)
    for one in found:
        if not isinstance(one["source"], str):
            one["source"] = json.dumps(one["source"], indent=2, ensure_ascii=False)
    return found
