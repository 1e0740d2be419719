"""Structural tags accept what their definition accepts, over all short texts of two letters."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wfsa
from tests.structural_tag.twin import accepts

pytestmark = pytest.mark.engine
VOCAB = wfsa.Vocab([bytes([b]) for b in range(256)] + [b"ab", b"ba", b"aab", b"abb"])
TEXTS = ["".join(letters) for n in range(8) for letters in product("ab", repeat=n)]
WORDS = st.text("ab", min_size=1, max_size=3)


def tag(begin: str, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


ENDS = st.one_of(st.text("ab", max_size=3), st.lists(WORDS, min_size=1, max_size=2))


def some(kind: str | list[str], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.sampled_from([kind] if isinstance(kind, str) else kind), **fields})


@st.composite
def triggered(draw: st.DrawFn, formats: st.SearchStrategy[Any]) -> dict[str, Any]:
    triggers = draw(st.lists(WORDS, min_size=1, max_size=2, unique=True))
    triggers = [t for t in triggers if not any(o != t and t.startswith(o) for o in triggers)]
    begins = [t + draw(st.text("ab", max_size=2)) for t in triggers]
    begins += [triggers[0] + draw(st.text("ab", max_size=2))] * draw(st.integers(0, 1))
    tags = [tag(begin, draw(formats), draw(ENDS)) for begin in begins]
    return {
        "type": "triggered_tags", "triggers": triggers, "tags": tags, "at_least_one": draw(st.booleans()),
        "stop_after_first": draw(st.booleans()), "excludes": draw(st.lists(WORDS, max_size=1)),
    }  # fmt: skip


def larger(formats: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    tags = st.builds(tag, st.text("ab", max_size=2), formats, ENDS)
    rules = st.lists(st.tuples(WORDS, formats), min_size=1, max_size=2)
    listed = {"tags": st.lists(tags, min_size=1, max_size=2), "separator": st.text("ab", max_size=2)}
    flags = {"at_least_one": st.booleans(), "stop_after_first": st.booleans()}
    return st.one_of(
        tags,
        triggered(formats),
        some(["sequence", "or"], elements=st.lists(formats, min_size=1, max_size=3)),
        some(["optional", "star", "plus"], content=formats),
        some("repeat", min=st.integers(0, 2), max=st.sampled_from([-1, 2, 3]), content=formats),
        some("tags_with_separator", **listed, **flags),
        some("dispatch", rules=rules, loop=st.booleans(), excludes=st.lists(WORDS, max_size=1)),
    )


FORMATS = st.recursive(
    st.one_of(
        some("const_string", value=st.text("ab", max_size=3)),
        some("any_text", excludes=st.lists(WORDS, max_size=2)),
        some("any_text", max_chars=st.integers(0, 3)),
    ),
    larger,
    max_leaves=5,
)


def check(form: dict[str, Any], mode: str) -> None:
    wanted = {text for text in TEXTS if accepts(form, text)}
    try:
        constraint = wfsa.compile_structural_tag({"type": "structural_tag", "format": form}, VOCAB, mode=mode)  # type: ignore[arg-type]
    except wfsa.GrammarError:
        assert not wanted
        return
    except wfsa.SchemaError as error:
        assert "no document" in str(error) and not wanted
        return
    found = set()
    for text in TEXTS:
        state = constraint.start()
        if state.commit_bytes(text.encode()) and state.is_accepting():
            found.add(text)
    assert found == wanted


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FORMATS)
def test_the_language_is_that_of_the_definition(form: dict[str, Any]) -> None:
    check(form, "lazy")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FORMATS)
def test_the_same_ahead(form: dict[str, Any]) -> None:
    check(form, "ahead")
