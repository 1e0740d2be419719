"""The short examples run, and write what they promise: scripts of under forty lines that need no network and no GPU."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wfsa

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHORT = ["server.py"]
MOST_LINES = 39
pytestmark = pytest.mark.engine


@pytest.mark.parametrize("name", SHORT)
def test_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", SHORT)
def test_example_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= MOST_LINES


# --- server.py ---------------------------------------------------------------------------------------------------


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMAS = [
    closed(name={"type": "string"}),
    closed(age={"type": "integer"}, tags={"type": "array", "items": {"enum": ["a", "b"]}}),
    {"type": "array", "items": {"type": "boolean"}},
    closed(name={"type": "string"}),
]


def write_token_by_token(server: dict[str, Any], schema: Any, max_tokens: int) -> str:
    """Write one document without drafts and without a batch: the obvious twin of the example's loop."""
    state, last = wfsa.compile_json_schema(schema, server["vocab"]).start(), 0
    while not state.is_finished():
        allowed = state.get_mask(budget=max_tokens - state.n_commits).ids()
        last = int(allowed[np.argmax(server["large"][last][allowed])])
        assert state.commit(last)
    return state.text().decode()


@pytest.mark.parametrize("max_tokens", [30, 31, 34, 100])
def test_server_writes_what_a_loop_without_drafts_writes(max_tokens: int) -> None:
    server = runpy.run_path(str(EXAMPLES / "server.py"))
    texts = server["serve"](SCHEMAS, max_tokens)
    assert texts == [write_token_by_token(server, schema, max_tokens) for schema in SCHEMAS]
    for text in texts:
        json.loads(text)
    assert server["store"].stats().memory_constraints == 5  # two of the script itself, three of these four


def test_server_accepts_drafts() -> None:
    server = runpy.run_path(str(EXAMPLES / "server.py"))
    passes = []

    class Model(np.ndarray):
        """Counts the passes over several positions, which are those that verify drafts."""

        def __getitem__(self, key: Any) -> Any:
            if isinstance(key, np.ndarray):
                passes.append(len(key))
            return np.asarray(self)[key]

    server["serve"].__globals__["large"] = server["large"].view(Model)
    text = server["serve"](SCHEMAS[:1], 60)[0]
    assert 0 < len(passes) < 0.7 * len(text)
