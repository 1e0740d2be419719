"""The cyclic collector is held back while a constraint is compiled, and on again afterwards, whatever happens."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import pytest

import wfsa
from wfsa import compiler
from wfsa.collector import HeldCollector

VOCAB = wfsa.Vocab([*(bytes([b]) for b in range(256)), b"</s>"], special_ids=[256], eos_ids=[256])
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}


@pytest.fixture(autouse=True)
def collector_on() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_is_off_while_compiling_and_on_afterwards() -> None:
    seen = []
    wfsa.compile_json_schema(SCHEMA, VOCAB, progress=lambda stage, fraction: seen.append(gc.isenabled()))
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_it_is_on_after_an_error() -> None:
    with pytest.raises(wfsa.SchemaError):
        wfsa.compile_json_schema({"type": "no such type"}, VOCAB)
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    wfsa.compile_json_schema(SCHEMA, VOCAB)
    assert not gc.isenabled()


def test_the_last_holder_turns_it_on() -> None:
    a, b = HeldCollector(), HeldCollector()
    a.hold()
    b.hold()
    a.let_go()
    a.let_go()
    assert not gc.isenabled()
    b.let_go()
    assert gc.isenabled()


def test_many_threads_compile() -> None:
    def run(k: int) -> None:
        for i in range(20):
            wfsa.compile_json_schema({"const": f"{k} {i}"}, VOCAB, mode="lazy")

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert gc.isenabled()


def test_a_long_compilation_lets_it_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "MOST_SECONDS", 0.0)
    seen: list[bool] = []

    def note(stage: str, fraction: float) -> None:
        seen.append(gc.isenabled())

    wfsa.compile_json_schema(SCHEMA, VOCAB, progress=note)
    assert seen[-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_is_forked_meanwhile_collects() -> None:
    held = HeldCollector()
    held.hold()
    pid = os.fork()
    if pid == 0:
        fine = gc.isenabled()
        held.let_go()
        os._exit(0 if fine and gc.isenabled() else 1)
    held.let_go()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert gc.isenabled()
