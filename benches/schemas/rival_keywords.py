"""Tests which keywords of JSON Schema each engine enforces, with some documents per keyword and the engine's masks.

``python -m benches rival-keywords`` writes rival-keywords.json next to the other results; docs/schema-support.md has it
as a table.  A keyword is

    refused    if the engine does not compile the schema, and says so
    ignored    if a document that the keyword forbids is accepted
    narrowed   if no forbidden document is accepted, but a permitted one is refused in both spellings of ``json.dumps``
    enforced   if none of these holds for the documents here

This is a probe, not a proof: "enforced" means that no document here showed otherwise.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benches.engines import build, has_bit
from benches.markdown import RESULTS
from benches.recorded_data import Vocabulary, encoder, read_vocabulary
from benches.supervisor import ROOT, tell

ENGINES = ("wfsa", "llguidance", "xgrammar", "glrmask")
PATH = RESULTS / "rival-keywords.json"
_ANY_OBJECT: dict[str, Any] = {"type": "object"}

#: Schema, permitted documents and forbidden documents, by keyword.
PROBES: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "type": ({"type": "integer"}, [1, -7], ["a", 1.5]),
    "enum": ({"enum": ["a", 2, None]}, ["a", 2, None], ["b", 3]),
    "const": ({"const": "a"}, ["a"], ["b"]),
    "minimum": ({"type": "integer", "minimum": 13}, [13, 200], [12, -1]),
    "maximum": ({"type": "integer", "maximum": 13}, [13, -200], [14, 200]),
    "exclusiveMinimum": ({"type": "integer", "exclusiveMinimum": 13}, [14], [13]),
    "exclusiveMaximum": ({"type": "number", "exclusiveMaximum": 13}, [12.5], [13, 13.5]),
    "multipleOf": ({"type": "integer", "multipleOf": 7}, [0, 49], [50]),
    "minLength": ({"type": "string", "minLength": 3}, ["abc"], ["ab"]),
    "maxLength": ({"type": "string", "maxLength": 3}, ["abc", "éé"], ["abcd"]),
    "pattern": ({"type": "string", "pattern": "^a[0-9]+$"}, ["a1"], ["a", "b1"]),
    "pattern, unanchored": ({"type": "string", "pattern": "b"}, ["abc"], ["ac"]),
    "pattern, look-ahead": ({"type": "string", "pattern": "^(?!ab)[a-c]+$"}, ["ac"], ["abc"]),
    "format: date": ({"type": "string", "format": "date"}, ["2024-02-29"], ["2024-13-01", "x"]),
    "items": ({"type": "array", "items": {"type": "integer"}}, [[], [1, 2]], [["a"]]),
    "prefixItems": (
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
        [[1, "a"], []],
        [["a"], [1, 2]],
    ),
    "minItems": ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [[1, 2]], [[1]]),
    "maxItems": ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, [[1, 2]], [[1, 2, 3]]),
    "uniqueItems": ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, [[1, 2, 12]], [[1, 2, 1]]),
    "contains": ({"type": "array", "items": {"type": "integer"}, "contains": {"const": 1}}, [[2, 1]], [[2], []]),
    "unevaluatedItems": (
        {"type": "array", "prefixItems": [{"type": "integer"}], "unevaluatedItems": False},
        [[1]],
        [[1, 2]],
    ),
    "properties": ({"type": "object", "properties": {"a": {"type": "integer"}}}, [{"a": 1}], [{"a": "x"}]),
    "additionalProperties": (
        {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        [{"a": 1}, {}],
        [{"b": 1}],
    ),
    "required": ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, [{"a": 1}], [{}]),
    "patternProperties": (
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False},
        [{"ab": 1}],
        [{"ab": "x"}, {"b": 1}],
    ),
    "propertyNames": ({"type": "object", "propertyNames": {"maxLength": 2}}, [{"ab": 1}], [{"abc": 1}]),
    "minProperties": ({"type": "object", "minProperties": 2}, [{"a": 1, "b": 2}], [{"a": 1}]),
    "maxProperties": ({"type": "object", "maxProperties": 1}, [{"a": 1}], [{"a": 1, "b": 2}]),
    "dependentRequired": (
        {**_ANY_OBJECT, "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}},
        [{"a": 1, "b": 1}, {"b": 1}],
        [{"a": 1}],
    ),
    "dependentSchemas": (
        {**_ANY_OBJECT, "properties": {"a": {}, "b": {}}, "dependentSchemas": {"a": {"required": ["b"]}}},
        [{"a": 1, "b": 1}],
        [{"a": 1}],
    ),
    "unevaluatedProperties": (
        {**_ANY_OBJECT, "properties": {"a": {}}, "unevaluatedProperties": False},
        [{"a": 1}],
        [{"b": 1}],
    ),
    "allOf": ({"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}]}, [4], [2, 6]),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [1, None], ["a"]),
    "oneOf": ({"oneOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 5}]}, [2, 6], [4]),
    "not": ({"type": "string", "not": {"const": "a"}}, ["b"], ["a"]),
    "if, then, else": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "if": {"properties": {"a": {"const": 1}}},
            "then": {"required": ["b"]},
        },
        [{"a": 1, "b": 2}, {"a": 3}],
        [{"a": 1}],
    ),
    "$ref": ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "integer"}}}, [1], ["a"]),
    "$ref, with siblings": ({"$ref": "#/$defs/x", "maximum": 5, "$defs": {"x": {"type": "integer"}}}, [1], [6]),
    "properties in another order": (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "additionalProperties": False,
        },
        [{"b": 1, "a": 1}],
        [{"c": 1}],
    ),
}


def accepts(engine: Any, compiled: Any, ids: list[int], buffer: Any) -> bool:
    state = engine.starter(compiled)()
    fill, commit = engine.filler(state, buffer), engine.committer(state)
    for token in ids:
        buffer[:] = 0
        fill()
        if not has_bit(buffer, token):
            return False
        commit(token)
    buffer[:] = 0
    return bool(engine.may_end(state, buffer))


def probe(engine: Any, encode: Any, keyword: str, n_tokens: int) -> str:
    schema, permitted, forbidden = PROBES[keyword]
    buffer = np.zeros((n_tokens + 31) // 32, np.int32)
    try:
        compiled = engine.compile("json_schema", engine.prepare("json_schema", schema))
    except BaseException:
        return "refused"

    def taken(document: Any) -> bool:
        spelled = {json.dumps(document), json.dumps(document, separators=(",", ":"), ensure_ascii=False)}
        return any(accepts(engine, compiled, encode(text), buffer) for text in spelled)

    if any(map(taken, forbidden)):
        return "ignored"
    return "enforced" if all(map(taken, permitted)) else "narrowed"


def table() -> str:
    """Return the results as a Markdown table."""
    results = json.loads(PATH.read_text())["engines"]
    names = [name for name in ENGINES if name in results]
    rows = ["| keyword | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for keyword in PROBES:
        word = keyword.partition(",")[0].partition(":")[0]
        shown = keyword if " " in word else f"`{word}`{keyword[len(word) :]}"
        rows.append(
            f"| {shown} | " + " | ".join(results[name].get(keyword, "crashed") for name in names) + " |"
        )
    return "\n".join(rows)


def _one(name: str) -> None:
    vocabulary: Vocabulary = read_vocabulary("llama3")
    engine, encode = build(name, vocabulary), encoder(vocabulary).encode_ordinary
    for keyword in PROBES:
        print(json.dumps([keyword, probe(engine, encode, keyword, len(vocabulary.tokens))]), flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: this bench has only the common ones."""


def main(args: argparse.Namespace) -> Path:
    answers: dict[str, dict[str, str]] = {}
    for name in ENGINES:
        done = subprocess.run(
            [sys.executable, "-m", "benches.schemas.rival_keywords", name],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        answers[name] = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
        tell(f"{name}: {len(answers[name])} keywords.")
    args.out.mkdir(parents=True, exist_ok=True)
    path: Path = args.out / PATH.name
    path.write_text(json.dumps({"engines": answers}, indent=1) + "\n")
    return path


if __name__ == "__main__":
    _one(sys.argv[1])
