"""Small examples to begin with: schemas and grammars, each with a text."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def examples() -> list[dict[str, Any]]:
    """Returns title, kind, source and text of each example."""
    text = resources.files("wfsa.explorer").joinpath("gallery.json").read_text("utf-8")
    gallery: list[dict[str, Any]] = json.loads(text)
    for example in gallery:
        if not isinstance(example["source"], str):
            example["source"] = json.dumps(example["source"], indent=2, ensure_ascii=False)
    return gallery
