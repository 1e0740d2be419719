"""Outputs of a model that are very deep or very long: a verdict in linear time, whatever is written.

Each case runs in a process of its own, so that one that dies is a failure with a name.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.engine

PRELUDE = """
import wfsa
from tests.fuzz.limits import byte_vocab
vocab = byte_vocab()
def schema(schema, **options):
    return wfsa.compile_json_schema(schema, vocab, mode="lazy", **options)
"""

CASES = {
    "brackets under uniqueItems": """
state = schema({"type": "array", "uniqueItems": True}).start()
n = 500_000
assert state.commit_bytes(b"[" * n)
assert not state.is_accepting()
assert state.commit_bytes(b"]" * n)
assert state.is_accepting()
""",
    "equal deep items under uniqueItems": """
state = schema({"type": "array", "uniqueItems": True}).start()
n = 500_000
assert state.commit_bytes(b"[" + b"[" * n + b"]" * n + b"," + b"[" * n)
for closing in (b"]" * n, b"]" * n + b"]", b"]" * n + b","):
    assert not state.fork().commit_bytes(closing)
assert state.commit_bytes(b"0" + b"]" * n + b"]")
assert state.is_accepting()
""",
    "equal deep objects under uniqueItems": """
state = schema({"type": "array", "uniqueItems": True}).start()
n = 100_000
item = b'{"b":0,"a":' * n + b"0" + b"}" * n
again = b'{"a":' * n + b"0" + b',"b":0}' * n
assert state.commit_bytes(b"[" + item + b"," + again[:-1])
assert not state.commit_bytes(b"}")
assert state.commit_bytes(b',"c":0}]')
assert state.is_accepting()
""",
}


@pytest.mark.parametrize("name", CASES)
def test_ends(name: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PRELUDE + CASES[name]], capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, f"exit {ended.returncode}: {ended.stderr[-2000:]}"
