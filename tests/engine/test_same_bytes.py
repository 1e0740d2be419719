"""Equal input gives equal artifacts, independently of earlier compilations of the vocabulary."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wfsa

pytestmark = pytest.mark.engine
PIECES = [b'{"', b'":', b'": "', b'", "', b'"}', b"ab", b"abc", b"name", b"true", b"12", b"2024-", b"\xc3\xa9"]
TEXT = {"type": "string"}
SCHEMAS: list[object] = [
    {"properties": {"name": TEXT, "abc": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}},
    {"properties": {"name": {**TEXT, "maxLength": 7}, "ab": {**TEXT, "minLength": 2, "maxLength": 40}}},
    {"type": "array", "items": {**TEXT, "pattern": "^[a-c]{1,9}$"}},
    {"type": "object", "properties": {"a": {**TEXT, "format": "date"}, "n": {"type": "number"}}, "required": ["a"]},
    {"enum": ["abc", "ab", "name", "true"]},
    {"anyOf": [{"type": "array", "items": {"type": "number"}}, {**TEXT, "pattern": "ab"}, {"type": "null"}]},
    {"patternProperties": {"^x": TEXT}, "propertyNames": {"maxLength": 12}, "additionalProperties": TEXT},
    {},
]
REGEXES = ["[a-z]{2,30}=[0-9]+", "(ab|abc)*name?", "[^,]*(,[^,]*){0,3}"]
N_GRAMMARS = len(SCHEMAS) + len(REGEXES)


def fresh_vocab() -> wfsa.Vocab:
    n = 256 + len(PIECES)
    return wfsa.Vocab([*(bytes([b]) for b in range(256)), *PIECES, b"<eos>"], special_token_ids=[n], eos_token_ids=[n])


def compiled(number: int, vocab: wfsa.Vocab) -> wfsa.Constraint:
    if number < len(SCHEMAS):
        return wfsa.compile_json_schema(SCHEMAS[number], vocab)
    return wfsa.compile_regex(REGEXES[number - len(SCHEMAS)], vocab)


@cache
def alone(number: int) -> bytes:
    constraint = compiled(number, fresh_vocab())
    assert constraint.stats["complete"]
    return constraint.to_bytes()


@given(st.lists(st.integers(0, N_GRAMMARS - 1), min_size=2, max_size=8))
def test_earlier_compilations_change_no_byte(numbers: list[int]) -> None:
    vocab = fresh_vocab()
    for number in numbers:
        assert compiled(number, vocab).to_bytes() == alone(number)


@pytest.mark.parametrize("number", range(N_GRAMMARS))
def test_a_loaded_constraint_is_written_as_it_was(number: int) -> None:
    assert wfsa.Constraint.from_bytes(alone(number), fresh_vocab()).to_bytes() == alone(number)
