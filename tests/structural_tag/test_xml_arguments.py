"""Arguments in XML-like styles: what is written satisfies the schema, what satisfies it and has a spelling is taken.

Random schemas with every keyword; texts by random walks over masks to the end, and arguments out of small values.  The
readers of tests/oracles/xml_arguments.py read texts back, and jsonschema-rs judges the arguments.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

import wfsa
from tests.oracles.xml_arguments import STYLES, Twice, Unreadable, readings, rendered
from wfsa.grammar.structural_tag.xml_styles import STYLES as WRITTEN

pytestmark = pytest.mark.engine
NAMES = ["a", "b", "cc"]
WORDS = [
    "", "a", "ab", "x<", "\n", "\nx\n", "</parameter>", "a</arg_value>b", "12", "null", "é", 'q"\\', "]<]minimax[>[",
]  # fmt: skip
SCALARS: list[Any] = [*WORDS, 0, 1, -3, 2.5, True, False, None]
PATTERNS = ["^a", "b$", "^[ab]{1,3}$", "^\\d+$", "x|^$", "^[^\\n]*$", "<"]
PIECES = ["</", "parameter", "<par", "arg_value>", "ab", "é", '"a', "]<]", "12", "\n<", "｜DSML｜", "<|close|>"]
VOCAB = wfsa.Vocab([*(bytes([b]) for b in range(256)), *(piece.encode() for piece in PIECES)])
LIKELY = frozenset(b'ab1x<>/"\\\n ]') | set(range(256, 256 + len(PIECES)))


class Schemas:
    """Random schemas of arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def some(self, *makers: Callable[[], dict[str, Any]], rate: float = 0.25) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for make in makers:
            if self.random.random() < rate:
                out |= make()
        return out

    def pick(self, values: list[Any], most: int = 3) -> list[Any]:
        return self.random.sample(values, self.random.randint(1, most))

    def value(self, depth: int = 2) -> Any:
        r = self.random
        kinds = [self.text, self.number, self.listed, self.plain]
        if depth:
            kinds += [lambda: self.array(depth), lambda: self.object(depth), lambda: self.combined(depth)]
        return r.choice(kinds)()

    def plain(self) -> dict[str, Any]:
        types = self.pick(["string", "integer", "number", "boolean", "null", "array", "object"], 2)
        return self.random.choice([{"type": types}, {"type": types[0]}, {}])

    def text(self) -> dict[str, Any]:
        r = self.random
        return {"type": r.choice(["string", ["string", "null"]])} | self.some(
            lambda: {"minLength": r.randint(0, 2)}, lambda: {"maxLength": r.randint(1, 4)},
            lambda: {"pattern": r.choice(PATTERNS)}, lambda: {"enum": self.pick(SCALARS, 5)},
            lambda: {"not": r.choice([{"pattern": r.choice(PATTERNS)}, {"const": "a"}, {"maxLength": 1}])},
            lambda: {"format": r.choice(["date", "ipv4"])} if r.random() < 0.3 else {},
        )  # fmt: skip

    def number(self) -> dict[str, Any]:
        r = self.random
        return {"type": r.choice(["integer", "number"])} | self.some(
            lambda: {"minimum": r.randint(-3, 1)}, lambda: {"exclusiveMaximum": r.randint(2, 30)},
            lambda: {"multipleOf": 2}, lambda: {"not": {"const": 1}},
        )  # fmt: skip

    def listed(self) -> dict[str, Any]:
        values = [*self.pick(SCALARS, 4), {"a": 1}, ["a", 1], {}]
        return self.random.choice([{"enum": self.pick(values, 4)}, {"const": self.random.choice(values)}])

    def array(self, depth: int) -> dict[str, Any]:
        r = self.random
        return {"type": "array"} | self.some(
            lambda: {"items": self.value(depth - 1)}, lambda: {"minItems": r.randint(0, 2)},
            lambda: {"maxItems": r.randint(1, 3)}, lambda: {"contains": self.value(0)},
            lambda: {"prefixItems": [self.value(0)]}, lambda: {"not": {"items": self.value(0)}},
            lambda: {"enum": [["a"], [1], []]}, rate=0.3,
        )  # fmt: skip

    def combined(self, depth: int) -> dict[str, Any]:
        r = self.random
        kind = r.choice(["anyOf", "oneOf", "allOf", "if"])
        if kind == "if":
            return {"if": self.value(0), "then": self.value(depth - 1), "else": self.value(depth - 1)}
        return {kind: [self.value(depth - 1) for _ in range(2)]}

    def object(self, depth: int) -> dict[str, Any]:
        r = self.random
        return {"type": "object", "properties": {name: self.value(depth - 1) for name in self.pick(NAMES)}} | self.some(
            lambda: {"required": self.pick(NAMES, 2)},
            lambda: {"additionalProperties": r.choice([True, False, self.value(0)])},
            lambda: {"patternProperties": {"^[bd]": self.value(0)}},
            lambda: {"propertyNames": r.choice([{"maxLength": 1}, {"pattern": "c|a"}, {"enum": ["a", "cc"]}])},
            lambda: {"minProperties": r.randint(1, 2)}, lambda: {"maxProperties": r.randint(1, 2)},
            lambda: {"dependentRequired": {"a": ["b"]}}, lambda: {"dependentSchemas": {"b": {"required": ["a"]}}},
            lambda: {"dependencies": {"cc": ["a"]}}, lambda: {"not": {"required": self.pick(NAMES, 2)}},
            lambda: {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            lambda: {"enum": [{"a": 1}, {"a": "ab", "cc": None}, {}]} if r.random() < 0.3 else {},
            lambda: {"unevaluatedProperties": False} if r.random() < 0.3 else {},
            rate=0.18,
        )  # fmt: skip


def compiled(style: str, schema: Any, **options: Any) -> wfsa.GrammarConstraint | None:
    """The constraint of arguments; None if there are none."""
    form = {"type": "arguments", "json_schema": schema, "style": style}
    try:
        return wfsa.compile_structural_tag(
            {"format": form}, VOCAB, mode="lazy", schema_options=wfsa.SchemaOptions(**options)
        )
    except wfsa.SchemaError as error:
        assert "no document satisfies" in str(error), (schema, error)
        return None


def walked(constraint: wfsa.Constraint, choose: random.Random) -> str | None:
    """A random text to its end, None if some bytes of it are no text."""
    state = constraint.start()
    left = state.min_tokens() + choose.randint(0, 60)
    out: list[int] = []
    while True:
        ids = state.get_mask(budget=left).ids().tolist()
        assert ids or state.is_accepting(), bytes(b"".join(VOCAB.tokens[i] for i in out))
        if state.is_accepting() and (not ids or choose.random() < 0.3):
            break
        likely = [i for i in ids if i in LIKELY]
        out.append(choose.choice(likely if likely and choose.random() < 0.8 else ids))
        assert state.commit(out[-1])
        left -= 1
    return b"".join(VOCAB.tokens[i] for i in out).decode()


def check_walks(style: str, schema: Any, constraint: wfsa.Constraint, seed: int, n: int = 4) -> None:
    judge = jsonschema_rs.validator_for(schema, validate_formats=True)
    for k in range(n):
        text = walked(constraint, random.Random(seed * 100 + k))
        try:
            found = readings(style, text)
        except Twice as error:  # of names that no schema lists no more than the values is known
            assert not (error.is_argument and error.names & set(schema["properties"])), (style, schema, text)
            continue
        except Unreadable as error:
            raise AssertionError((style, schema, text)) from error
        assert any(map(judge.is_valid, found)), (style, schema, text, found)


def values(choose: random.Random, depth: int = 1) -> Any:
    if depth and choose.random() < 0.3:
        return [values(choose, 0) for _ in range(choose.randint(0, 3))]
    if depth and choose.random() < 0.1:
        return {choose.choice(NAMES): values(choose, 0)} if choose.random() < 0.7 else {}
    return choose.choice(SCALARS)


def has_members(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(has_members, value))
    return isinstance(value, dict) and bool(value)


def check_arguments(style: str, schema: Any, constraint: wfsa.Constraint | None, seed: int, n: int = 60) -> None:
    judge, choose = jsonschema_rs.validator_for(schema, validate_formats=True), random.Random(seed)
    listed = list(schema["properties"])
    for _ in range(n):
        names = [name for name in listed if choose.random() < 0.6]
        arguments = {name: values(choose) for name in names}
        if not judge.is_valid(arguments) or (WRITTEN[style].item and any(map(has_members, arguments.values()))):
            continue
        text = rendered(style, arguments)
        bars = WRITTEN[style].bars
        if text is None or any(bar in json.dumps(arguments) for bar in bars):
            continue
        try:
            if arguments not in readings(style, text):
                continue
        except Unreadable:
            continue
        assert constraint is not None, (style, schema, arguments)
        state = constraint.start()
        assert state.commit_bytes(text.encode()) and state.is_accepting(), (style, schema, text)


def check(style: str, seed: int) -> None:
    schemas = Schemas(seed)
    schema = schemas.object(3)
    any_order = seed % 2 == 1
    constraint = compiled(style, schema, property_order="any" if any_order else "declared")
    if constraint is not None:
        check_walks(style, schema, constraint, seed)
    check_arguments(style, schema, constraint, seed)


@pytest.mark.parametrize("style", STYLES)
def test_random_arguments(style: str) -> None:
    for seed in range(40):
        check(style, seed)


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_random_arguments_at_length(style: str) -> None:
    for seed in range(100, 1500):
        check(style, seed)
