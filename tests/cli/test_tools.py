"""trace, profile, bench, JSON output, colours and completion."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import SCHEMA, Run, artifact, run, vocab  # noqa: F401 - fixtures
from wfsa.caches import cache_info
from wfsa.cli.check import coloured
from wfsa.engine_comparison import compare
from wfsa.schema_advice import advice
from wfsa.schema_costs import schema_costs
from wfsa.vocab import Vocab
from wfsa.vocab.cut import cut

BYTES = Vocab([bytes([b]) for b in range(256)] + [b"ab", b"abc", b"</s>"], [258], [258])
Fixture = Callable[..., Any]
cli = importlib.import_module("wfsa.cli.main")  # wfsa.cli.main is its function


def test_a_text_is_cut_into_the_longest_tokens() -> None:
    assert cut(BYTES, b"abcabx") == [257, 256, ord("x")] and cut(BYTES, b"") == []
    assert cut(BYTES, b"</s>") == [*b"</s>"]  # a special token's name is text
    assert cut(Vocab([b"a", b"</s>"], [1], [1]), b"aab") == [0, 0]


def test_trace(run: Run, artifact: Path) -> None:  # noqa: F811
    code, out, _ = run("trace", artifact, '{"name": "Ada", "age": 3}')
    assert code == 0 and "forced" in out and out.splitlines()[-1] == "accepted"
    code, out, _ = run("trace", artifact, '{"name": "Ada", "age": -3}')
    assert code == 1 and "refused" in out.splitlines()[-1] and "/properties/age" in out
    code, out, _ = run("trace", artifact, '{"name": "Ada"', "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 1 and lines[-1] == {"accepted": False, "tokens": len(lines) - 1}
    assert [line["text"] for line in lines[:3]] == ['{"', "name", '":'] and lines[0]["tokens_to_end"] > 5
    assert lines[1]["choices"] >= 1 and all(line["mask_us"] > 0 and line["commit_us"] > 0 for line in lines[:-1])
    code, out, _ = run("trace", artifact, "--ids", "256,258,999999", "--json")
    assert code == 1 and json.loads(out.splitlines()[-1])["refused"] == 999999
    assert run("trace", artifact, "--ids", "1,x")[0] == 2 and run("trace", artifact, "a", "--ids", "1")[0] == 2


def test_trace_cuts_as_the_model_s_tokenizer_does(run: Run, tmp_path: Path) -> None:  # noqa: F811
    tokenizers = pytest.importorskip("tokenizers")
    words = ["a", "b", "c", "ab", "bc", "</s>"]
    model = tokenizers.models.BPE({word: i for i, word in enumerate(words)}, [("b", "c"), ("a", "b")])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["</s>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    artifact, vocabulary = tmp_path / "a.wfsa", ("--vocab", tmp_path / "tokenizer.json")  # noqa: F811
    (tmp_path / "a.re").write_text("[abc]+")
    code, _, told = run("compile", tmp_path / "a.re", "--kind", "regex", *vocabulary, "--eos", "5", "-o", artifact)
    assert code == 0, told
    cuts = []
    for more in ((), (*vocabulary, "--eos", "5")):
        code, out, told = run("trace", artifact, "abc", "--json", *more)
        assert code == 0, told
        cuts.append([json.loads(line)["text"] for line in out.splitlines()[:-1]])
    assert cuts == [["ab", "c"], ["a", "bc"]]


def test_json_of_every_command(run: Run, artifact: Path, tmp_path: Path) -> None:  # noqa: F811
    code, out, _ = run("check", artifact, '{"name": 3}', "--json")
    told = json.loads(out)
    assert code == 1 and (told["offset"], told["accepted"]) == (9, False) and "/properties/name" in told["because"]
    assert json.loads(run("check", artifact, '{"name": "A", "age": 3}', "--json")[1]) == {"accepted": True, "bytes": 23}
    told = json.loads(run("mask", artifact, '{"', "--json")[1])
    assert bytes(told["first_bytes"]) == b"n" and not told["may_end"] and set(told["ids"]) == {ord("n"), 258}
    told = json.loads(run("inspect", artifact, "--json")[1])
    assert told["vocabulary"]["tokens"] == 261 and told["stats"]["complete"] and told["memory"]["total"] > 0
    lines = [json.loads(line) for line in run("report", tmp_path / "person.json", "--json")[1].splitlines()]
    assert {"pointer": "/properties/name", "keyword": "maxLength", "status": "enforced", "note": ""} in lines
    only = run("report", tmp_path / "person.json", "--json", "--status", "narrowed")[1].splitlines()
    assert only and all(json.loads(line)["status"] == "narrowed" for line in only)


def test_colours_show_the_place_and_send_nothing_of_the_text_to_the_terminal() -> None:
    shown = coloured(b'{"a": \x1b[31m\xc3\xa9}', 6)
    assert shown == '\x1b[32m{"a": \x1b[0m\x1b[41;97m\\x1b\x1b[0m\x1b[2m[31mé}\x1b[0m'
    assert coloured(b"ab", 2) == "\x1b[32mab\x1b[0m\x1b[41;97m⌁\x1b[0m\x1b[2m\x1b[0m"
    assert coloured(b"x" * 1000, 500, 10).startswith("…\x1b[32m" + "x" * 10 + "\x1b[0m")


def test_options_may_stand_before_the_text(run: Run, artifact: Path, vocab: Path) -> None:  # noqa: F811
    text = '{"name": "Ada", "age": 3}'
    for command in ("check", "trace"):
        assert run(command, "--json", artifact, "--vocab", vocab, text)[0] == 0
        assert run(command, artifact, "--", text)[0] == 0 and run(command, artifact, "--", "--json")[0] == 1
        assert run(command, "--vocab", vocab, "--", artifact, "-1")[0] == 1
        assert run(command, artifact, "--vocab", vocab, text, "more")[0] == 2


def command_lines() -> Iterator[tuple[str, str]]:
    """Where it stands, and a command line, of the examples in --help and of the pages."""
    texts = {f"wfsa {name} --help": cli._module(name).EXAMPLES for name in cli.COMMANDS} | {"wfsa --help": cli.EXAMPLES}
    root = Path(__file__).resolve().parents[2]
    texts |= {page.name: page.read_text(encoding="utf-8") for page in (root / "README.md", *root.glob("docs/**/*.md"))}
    for place, text in texts.items():
        for line in text.splitlines():
            line = line.strip().rpartition("some-program | ")[2]
            if line.startswith("wfsa ") and "get | put" not in line:
                yield place, line


@pytest.mark.parametrize(("place", "line"), list(command_lines()))
def test_command_lines_that_are_shown_can_be_parsed(place: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    cli._parser(words[0]).parse_args(words)


# --- profile -------------------------------------------------------------------------------------------------------


def test_what_a_schema_costs_by_place() -> None:
    schema = {
        "type": "object",
        "properties": {
            "cheap": {"type": "boolean"},
            "dear/~": {"type": "object", "properties": {"x": {"pattern": "^([a-c]{1,40}-){1,20}[0-9]{1,30}$"}}},
        },
    }
    limit = cache_info()["total"]["limit"]
    costs = schema_costs(schema, BYTES, seconds=5)
    assert costs.places[0].pointer in ("/properties/dear~1~0", "/properties/dear~1~0/properties/x")
    assert costs.places[0].seconds > costs.seconds / 3 and costs.places[0].lexer_states > 100
    assert costs.lexer_states > 100 and sum(costs.stages.values()) <= costs.seconds * 3
    assert next(place for place in costs.places if place.pointer == "/properties/cheap").lexer_states < 50
    assert [name for name, _ in costs.options][:1] == ["whitespace=compact"]
    assert cache_info()["total"]["limit"] == limit
    assert schema_costs(schema, BYTES, seconds=0).left_out == 2


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"anyOf": [{"properties": {f"p{n}": {}}} for n in range(5)]}, "these 5 branches of anyOf share no discr"),
        ({"anyOf": [{"properties": {"k": {"const": n}}} for n in range(5)]}, None),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, "anyOf says the same"),
        ({"maxLength": 100_000}, "maxLength: 100000 is counted"),
        ({"uniqueItems": True}, "unique_items"),
        ({"patternProperties": {"^a": {}, "^b": {}}}, "names by several patterns"),
        (True, None),
    ],
)
def test_advice(schema: Any, said: str | None) -> None:
    told = "; ".join(advice(schema))
    assert (said in told) if said else not told


def test_profile_on_the_command_line(run: Run, tmp_path: Path, vocab: Path) -> None:  # noqa: F811
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    code, out, err = run("profile", tmp_path / "s.json", "--vocab", vocab, "--seconds", "3")
    assert (code, err) == (0, "") and "/properties/age" in out and "with whitespace=compact" in out
    told = json.loads(run("profile", tmp_path / "s.json", "--vocab", vocab, "--seconds", "3", "--json")[1])
    assert {place["pointer"] for place in told["places"]} == {"/properties/age", "/properties/name"}


# --- bench ---------------------------------------------------------------------------------------------------------


def test_bench(run: Run, tmp_path: Path, vocab: Path) -> None:  # noqa: F811
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "t.json").write_text('{"name": "Ada", "age": 3}\n')
    code, out, err = run("bench", tmp_path / "s.json", "--vocab", vocab, "--text", tmp_path / "t.json")
    assert (code, err) == (0, "") and "wfsa, background" in out and "1 of 1" in out
    lines = run("bench", tmp_path / "s.json", "--vocab", vocab, "--json", "--repeats", "1")[1].splitlines()
    rows = {row["engine"]: row for row in map(json.loads, lines)}
    assert rows["wfsa"]["accepted"] == 3 and rows["wfsa"]["masks"] > 10 and not rows["wfsa"]["error"]
    assert all(row["masks"] > 0 for row in rows.values() if not row["error"])  # what others take is theirs


# --- completion ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "wanted"), [("wfsa tr", "trace"), ("wfsa compile --le", "--lenient")])
def test_completion(line: str, wanted: str, tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    out = tmp_path / "out"
    environment = {
        **os.environ, "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out), "_ARGCOMPLETE_IFS": "\n",
    }  # fmt: skip
    subprocess.run([sys.executable, "-m", "wfsa"], env=environment, check=False, timeout=60)
    assert wanted in out.read_text().split()


ODD = "a\x1b[31m\x9b2J\u202e\ud800"
OBEYED = ("\x1b", "\x9b", "\u202e", "\ud800")


def test_names_of_a_schema_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:  # noqa: F811
    vocabulary, source, artifact = tmp_path / "b.vocab", tmp_path / "s.json", tmp_path / "s.wfsa"  # noqa: F811
    BYTES.save(vocabulary)
    schema = {"properties": {ODD: {"type": "integer"}}, "required": [ODD], "additionalProperties": False}
    source.write_text(json.dumps(schema))
    code, _, told = run("compile", source, "--vocab", vocabulary, "-o", artifact)
    assert code == 0, told
    (tmp_path / "bad.json").write_text(json.dumps({"properties": {ODD: {"type": "nonsense"}}}))
    for n, arguments in enumerate([
        ("report", source), ("report", tmp_path / "bad.json"), ("inspect", artifact), ("check", artifact, "{}"),
        ("check", artifact, '{"\x1b[2J\u202e'), ("check", artifact, '{"a\x1b', "--json"), ("trace", artifact, "{}"),
        ("profile", source, "--vocab", vocabulary, "--seconds", "0.5"), ("report", tmp_path / f"{ODD[:-1]}.json"),
    ]):  # fmt: skip
        code, out, told = run(*arguments)
        assert code in (0, 1, 2) and not any(one in out + told for one in OBEYED), arguments
        assert n in (4, 5) or "x1b[31m" in out + told or "u001b[31m" in out + told, arguments


def test_what_no_token_spells_is_not_accepted(run: Run, tmp_path: Path) -> None:  # noqa: F811
    vocabulary, source, artifact = tmp_path / "v.vocab", tmp_path / "s.re", tmp_path / "s.wfsa"  # noqa: F811
    some = Vocab([b"a", b"b", b"</s>"], [2], [2])
    some.save(vocabulary)
    source.write_text("a.*")
    assert run("compile", source, "--kind", "regex", "--vocab", vocabulary, "-o", artifact)[0] == 0
    assert run("trace", artifact, "ab")[0] == 0
    code, out, _ = run("trace", artifact, "abc")
    assert code == 1 and "no token of the vocabulary spells what stands at byte 2" in out
    pytest.importorskip("llguidance")
    rows = compare('{"type": "string"}', Vocab([b'"', b"a", b"</s>"], [2], [2]), [b'"a"', b'"a"!'], 1)
    assert [row.accepted for row in rows if row.engine.startswith("wfsa")] == [1, 1]
