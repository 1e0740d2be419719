"""A function fits on a screen: at most 60 lines, without its docstring."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 60
FILES = [path for folder in ("grammar", "wfsa") for path in sorted((ROOT / folder).rglob("*.py"))
         if not path.is_relative_to(ROOT / "wfsa" / "grammar")]  # fmt: skip
# This list may only become shorter.
LONGER = {"add_arguments", "beam_step", "candidates", "multiples", "within"}


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    docstring = 0 if ast.get_docstring(function) is None else (first.end_lineno or 0) - first.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_functions_fit_on_a_screen(path: Path) -> None:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    long = {node.name for node in functions if length(node) > MOST_LINES}
    assert long <= LONGER
