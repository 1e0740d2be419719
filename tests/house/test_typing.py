"""What type checkers say about calls: right ones pass under ``mypy --strict``, wrong ones are found where they stand.

A line of the file below that ends in ``# wrong: CODE`` must be the place of an error of that code; no other may be.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLS = '''\
import numpy as np

import wfsa

vocab = wfsa.Vocab([b"a", b"b", b""], eos_ids=[2])
schema = {"type": "string"}
options = wfsa.CompileOptions(mode="lazy")

# --- compiling
wfsa.compile_json_schema(schema, vocab, mode="lazy", max_seconds=3, schema_options=wfsa.SchemaOptions(indent=2))
wfsa.compile_json_schema(schema, vocab, options=options, progress=lambda stage, fraction: None)
wfsa.compile_tools([], vocab, mode="ahead")
wfsa.compile_lark("start: A", vocab, start="start", max_lr_states=10)
wfsa.compile_gbnf("root ::= [a]", vocab, max_lexer_states=10)
made: wfsa.GrammarConstraint = wfsa.compile_regex("a", vocab, max_seconds=None)
wfsa.compile_json_schema(schema, vocab, mod="lazy")  # wrong: call-arg
wfsa.compile_json_schema(schema, vocab, whitespace=3)  # wrong: call-arg
wfsa.compile_json_schema(schema, vocab, mode="eager")  # wrong: arg-type
wfsa.compile_tools([], vocab, max_second=3)  # wrong: call-arg
wfsa.compile_regex("a", vocab, max_seconds="3")  # wrong: arg-type
wfsa.compile_lark("start: A", vocab, begin="start")  # wrong: call-arg
wfsa.compile_regex("a", [b"a"])  # wrong: arg-type
wfsa.CompileOptions(mode="both")  # wrong: arg-type

# --- constraints
texts: wfsa.TextConstraint = wfsa.compile_texts(["a", b"b"], vocab, hub=2)
wfsa.compile_choice(["a"], vocab)
wfsa.compile_texts([1], vocab)  # wrong: list-item
each: list[wfsa.Constraint] = [made, texts, wfsa.load("a.wfsa", vocab)]
again: wfsa.TextConstraint = wfsa.TextConstraint.load("a.wfsa", vocab)
other: wfsa.TextConstraint = wfsa.GrammarConstraint.load("a.wfsa", vocab)  # wrong: assignment
seconds: float = made.stats["seconds"]
n_states: int = made.stats["lexer_states"]
n_texts: int = texts.stats["texts"] + len(texts)
made.stats["lexer_stats"]  # wrong: typeddict-item
made.vocab = vocab  # wrong: misc

# --- states
state: wfsa.State = made.start(stop_ids=[1, 2])
written: wfsa.TextState = texts.start()
fork: wfsa.TextState = written.fork()
index: int = fork.text_index()
end: bytes | None = state.closing(limit=10)
count: int = state.commit_tokens(np.asarray([1])) + state.commit_tokens([1, 2])
ok: bool = state.commit(1) and state.commit_bytes(b"a")
state.text_index()  # wrong: attr-defined
state.commit("a")  # wrong: arg-type
made.start([1])  # wrong: call-arg
wfsa.fill_bitmasks([state, written], np.zeros((2, 1), np.int32), threads=2)
rows: int = wfsa.fill_chain(state, [0, 1], np.zeros((2, 1), np.int32))
counts: list[int] = wfsa.fill_tree([state, None], [[-1]] * 2, [[-1]] * 2, [[0]] * 2, np.zeros((2, 1))).tolist()
'''


@pytest.mark.slow  # `make types` runs this
def test_calls_as_a_type_checker_sees_them(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="NO MYPY: types of calls were not checked")
    path = tmp_path / "calls.py"
    path.write_text(CALLS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = re.finditer(r"calls\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    found = {(int(m[1]), m[2]) for m in errors}
    wrong = enumerate(CALLS.splitlines(), 1)
    want = {(number, line.rpartition("# wrong: ")[2]) for number, line in wrong if "# wrong: " in line}
    assert found == want, done.stdout
