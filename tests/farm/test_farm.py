"""A farm: sources from folders and lines, on processes and on Ray, stopped and begun again, with workers that die."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wfsa
from wfsa.cli import main
from wfsa.errors import WfsaError
from wfsa.farm import Source, compile_all, read_sources
from wfsa.storage.places import Place
from wfsa.store import ConstraintStore

pytest.importorskip("pebble")
pytest.importorskip("fsspec")
ROOT = Path(__file__).resolve().parents[2]
BAD = {"type": "nothing"}


def _vocab(extra: bytes) -> wfsa.Vocab:
    return wfsa.Vocab([bytes([byte]) for byte in range(256)] + [extra, b"<end>"], eos_ids=[257])


@pytest.fixture(scope="module")
def vocabs() -> dict[str, wfsa.Vocab]:
    return {"one": _vocab(b'{"'), "two": _vocab(b'":')}


def _sources(n: int) -> list[Source]:
    schemas = [json.dumps({"type": "object", "properties": {f"p{k}": {"type": "integer"}}}) for k in range(n)]
    return [Source(f"s:{number}", "json", text) for number, text in enumerate(schemas)]


# --- sources -------------------------------------------------------------------------------------------------------


def test_sources_of_folders_files_and_lines(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "b.json").write_text('{"type": "null"}')
    (tmp_path / "d" / "e" / "a.lark").write_text('start: "a"')
    (tmp_path / "d" / "notes.txt").write_text("no source")
    (tmp_path / "d" / "x.jsonl").write_text('{"type": "null"}\n\n{"kind": "regex", "source": "a+"}\n')
    with gzip.open(tmp_path / "y.jsonl.gz", "wt") as lines:
        lines.write('{"id": 1, "schema": {"type": "null"}}\n{"schema": "{\\"type\\":\\"null\\"}"}\n')
    found = [(Path(s.place).name, s.kind, s.text.strip()) for s in read_sources([tmp_path / "d"])]
    assert found == [
        ("b.json", "json", '{"type": "null"}'), ("a.lark", "grammar", 'start: "a"'),
        ("x.jsonl:1", "json", '{"type": "null"}'), ("x.jsonl:3", "regex", "a+"),
    ]  # fmt: skip
    lined = list(read_sources([tmp_path / "y.jsonl.gz"], field="schema"))
    assert [json.loads(source.text) for source in lined] == [{"type": "null"}] * 2
    with pytest.raises(WfsaError, match=r"notes\.txt: cannot tell"):
        list(read_sources([tmp_path / "d" / "notes.txt"]))
    with pytest.raises(WfsaError, match=r"x\.jsonl:1: this line has no field 'schema'"):
        list(read_sources([tmp_path / "d"], field="schema"))
    (tmp_path / "z.jsonl").write_text('{"schema": \n')
    with pytest.raises(WfsaError, match=r"z\.jsonl:1: this line is not JSON"):
        list(read_sources([tmp_path / "z.jsonl"], field="schema"))


# --- processes -----------------------------------------------------------------------------------------------------


def test_a_farm_fills_a_store(vocabs: dict[str, wfsa.Vocab], tmp_path: Path) -> None:
    sources = [*_sources(10), Source("bad", "json", json.dumps(BAD)), Source("worse", "json", "{"), _sources(1)[0]]
    seen: list[tuple[int, int]] = []
    report = compile_all(sources, vocabs, tmp_path, workers=2, progress=lambda *both: seen.append(both))
    assert (report.count("stored"), report.count("there"), report.count("failed")) == (20, 2, 4)
    assert [(o.place, o.vocabulary) for o in report.failures] == [
        ("bad", "one"), ("bad", "two"), ("worse", "one"), ("worse", "two"),
    ]  # fmt: skip
    assert "SchemaError" in report.failures[0].error and "not JSON" in report.failures[3].error
    assert seen[-1] == (26, 26)
    for vocab in vocabs.values():
        store = ConstraintStore(tmp_path, vocab)
        for source in sources[:10]:
            assert store.get(source.text).stats["complete"]
        assert store.stats().remote_hits == 10
    again = compile_all(sources, vocabs, tmp_path, workers=1)
    assert (again.count("stored"), again.count("there"), again.count("failed before"), again.count("failed")) == (
        0, 22, 4, 0,
    )  # fmt: skip
    limits = wfsa.CompileOptions(max_seconds=5.0)
    assert compile_all(sources, vocabs, tmp_path, workers=1, options=limits).count("failed") == 4  # other limits
    assert compile_all(sources, vocabs, tmp_path, workers=1, options=limits, retry_failed=True).count("failed") == 4


def test_a_worker_that_dies_costs_its_task(
    vocabs: dict[str, wfsa.Vocab], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that ends its process does so again by itself, and the others of its portion are done."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent / 'deadly'}{os.pathsep}{ROOT}")
    monkeypatch.setenv("WFSA_TEST_DEADLY", "p3")
    report = compile_all(_sources(6), vocabs, tmp_path, workers=2)
    assert report.count("stored") == 10
    assert [(o.place, o.status) for o in report.failures] == [("s:3", "failed"), ("s:3", "failed")]
    assert "ended twice" in report.failures[0].error


def test_a_farm_that_is_killed_goes_on(vocabs: dict[str, wfsa.Vocab], tmp_path: Path) -> None:
    vocabs["one"].save(tmp_path / "one.vocab")
    with (tmp_path / "s.jsonl").open("w") as lines:
        lines.writelines(source.text + "\n" for source in _sources(300))
    command = [
        sys.executable, "-m", "wfsa", "compile-all", "s.jsonl", "--vocab", "one.vocab", "--store", "far", "--workers",
        "2",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.Popen(command, cwd=tmp_path, env=environment, start_new_session=True)
    objects = Place.of(tmp_path / "far")
    until = time.monotonic() + 60
    while len(objects.listing()) < 20 and first.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = sum(entry.name.endswith(".wfsa") for entry in objects.listing())
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{300 - before:,} stored" in done.stdout and f"{before:,} there already, 0 failed" in done.stdout
    assert main(["store", "verify", str(tmp_path / "far")]) == 0


# --- Ray -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    paths = os.pathsep.join([str(ROOT), str(Path(__file__).parent / "deadly")])
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error",
        object_store_memory=200 << 20, runtime_env={"env_vars": {"PYTHONPATH": paths, "WFSA_TEST_DEADLY": "p3"}},
    )  # fmt: skip
    yield ray
    ray.shutdown()


def test_a_farm_on_ray(cluster: Any, vocabs: dict[str, wfsa.Vocab], tmp_path: Path) -> None:
    sources = [*_sources(8), Source("bad", "json", json.dumps(BAD))]
    report = compile_all(sources, vocabs, tmp_path, ray="auto", ray_memory=100 << 20)
    assert report.count("stored") == 14
    assert sorted({o.place for o in report.failures}) == ["bad", "s:3"]
    assert "process that compiled it ended" in next(o.error for o in report.failures if o.place == "s:3")
    local = tmp_path / "local"
    compile_all(sources[:3], vocabs, local, workers=1)
    for entry in Place.of(local).listing():
        assert (local / entry.name).read_bytes() == (tmp_path / entry.name).read_bytes()
    assert compile_all(sources[:3], vocabs, tmp_path, ray="auto").count("there") == 6


# --- the command line ----------------------------------------------------------------------------------------------


def test_command_lines(vocabs: dict[str, wfsa.Vocab], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    for source in _sources(3):
        (tmp_path / "in" / f"{source.place.replace(':', '')}.json").write_text(source.text)
    (tmp_path / "in" / "bad.json").write_text(json.dumps(BAD))
    vocabs["one"].save(tmp_path / "one.vocab")
    far, vocab = str(tmp_path / "far"), str(tmp_path / "one.vocab")
    assert main(["compile-all", str(tmp_path / "in"), "--vocab", vocab, "--store", far, "--workers", "1"]) == 1
    out = capsys.readouterr().out
    assert "bad.json: for " in out and "failed: SchemaError" in out and "3 stored" in out and "1 failed" in out
    assert main(["compile-all", str(tmp_path / "in"), "--vocab", vocab, "--store", far, "--json"]) == 1
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(one["status"] for one in told) == ["failed before", "there", "there", "there"]
    source = str(tmp_path / "in" / "s0.json")
    assert main(["store", "get", far, source, "--vocab", vocab, "-o", str(tmp_path / "a.wfsa")]) == 0
    assert "from the store" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "a.wfsa"), '{"p0": 1}']) == 0
    (tmp_path / "new.regex").write_text("[a-c]+\n")
    for expected in ("compiled, and published", "there already"):
        assert main(["store", "put", far, str(tmp_path / "new.regex"), "--vocab", vocab]) == 0
        assert expected in capsys.readouterr().out
    assert main(["store", "ls", far]) == 0
    assert vocabs["one"].fingerprint[:16] in (out := capsys.readouterr().out) and " 4 " in out
    assert main(["store", "ls", far, "--json"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(entries) == 5
    hit = next(Path(far, entry["name"]) for entry in entries if entry["name"].endswith(".wfsa"))
    hit.write_bytes(hit.read_bytes()[:-7] + b"0000000")
    assert main(["store", "verify", far]) == 1
    assert "does not match its checksum" in capsys.readouterr().out
    assert main(["store", "verify", far, "--remove"]) == 1 and not hit.exists()
    assert main(["store", "verify", far]) == 0
    assert main(["store", "prune", far]) == 2
    capsys.readouterr()
    assert main(["store", "prune", far, "--days", "1"]) == 0 and "0 objects" in capsys.readouterr().out
    Path(far, "0.0-1.1", "x").mkdir(parents=True)
    Path(far, "0.0-1.1", "x", "y.wfsa").write_bytes(b"old")
    assert main(["store", "prune", far, "--other-releases", "--dry-run"]) == 0
    assert "1 objects (0.0 MB) would be removed" in capsys.readouterr().out
    assert main(["store", "prune", far, "--other-releases"]) == 0 and "1 objects" in capsys.readouterr().out
    assert main(["store", "prune", far, "--megabytes", "0"]) == 0 and "4 objects" in capsys.readouterr().out
    assert main(["compile-all", str(tmp_path / "in"), "--vocab", "nowhere", "--store", far]) == 2
    for command in ("ls", "verify"):
        assert main(["store", command, str(tmp_path / "nowhere")]) == 2
        assert "No such file or directory" in capsys.readouterr().err
    (tmp_path / "none").mkdir()
    capsys.readouterr()
    assert main(["compile-all", str(tmp_path / "none"), "--vocab", vocab, "--store", far]) == 0
    assert "nothing to compile in" in capsys.readouterr().err
    assert main(["compile-all", str(tmp_path / "in"), "--vocab", vocab, "--store", far, "--set", "mode=lazy"]) == 2
