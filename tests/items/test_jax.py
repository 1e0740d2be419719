"""The JAX back end against the compiled step. JAX is left as it comes: without 64 bits outside the back end."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.items.backends import Case, all_nodes, cases, same_beams, searches
from wfsa.errors import ItemError
from wfsa.items import Beams, ItemFilter, ItemIndex

jax = pytest.importorskip("jax", reason="NO JAX: its back end was not run")

from wfsa.items.backends.jax import JaxItems  # noqa: E402

# Each example's programs are compiled anew, a second or two each; without jit, each operation is.
QUICK = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def eagerly(jit: bool) -> Any:
    return nullcontext() if jit else jax.disable_jit()


@pytest.mark.parametrize("jit", [True, False])
@given(case=cases())
@QUICK
def test_pieces(jit: bool, case: Case) -> None:
    index, items = case.index, JaxItems(case.index)
    nodes = all_nodes(index)
    n = len(nodes)
    per_node = None if case.filters is None else [case.filters[at % len(case.filters)] for at in range(n)]
    filters = items.filters(per_node, n)
    with eagerly(jit):
        np.testing.assert_array_equal(items.allowed(nodes, filters), index.allowed(nodes, per_node))

        logits = np.random.default_rng(case.seed).normal(size=(n, index.logits_size)).astype(np.float32)
        masked = items.mask_logits(logits, nodes, filters)
        np.testing.assert_array_equal(masked, index.mask_logits(logits, nodes, per_node))

        tokens, children = (np.asarray(x) for x in items.children(nodes, filters))
        indptr, want_tokens, want_children = index.children(nodes, per_node)
        keep = tokens >= 0
        np.testing.assert_array_equal(keep.sum(1), np.diff(indptr))
        np.testing.assert_array_equal(tokens[keep], want_tokens)
        np.testing.assert_array_equal(children[keep], want_children)

        every = np.arange(-1, index.logits_size + 1, dtype=np.int64)
        grid, choice = np.repeat(nodes[:, None], len(every), 1), np.repeat(every[None], n, 0)
        got = items.advance(grid, choice, filters)
        np.testing.assert_array_equal(got, index.advance(grid, choice, per_node))


@pytest.mark.parametrize("jit", [True, False])
@given(case=cases(), normalise=st.sampled_from(["full", "level", "valid", "none"]), know_level=st.booleans())
@QUICK
def test_steps(jit: bool, case: Case, normalise: Any, know_level: bool) -> None:
    items = JaxItems(case.index)
    filters = items.filters(case.filters, case.n_requests)
    for exact in (True, False):
        close = 0.0 if exact and normalise == "none" else 2e-6
        for step, (before, logits, after) in enumerate(searches(case, normalise, exact)):
            level = step if know_level else None
            with eagerly(jit):
                got = items.beam_step(before, logits, normalise=normalise, filters=filters, level=level)
            same_beams(after, got, close)


@pytest.mark.parametrize("layout", ["interval", "csr"])
@pytest.mark.parametrize("skewed", [False, True])
def test_medium(layout: Any, skewed: bool) -> None:
    """30,000 items of 5 levels: hubs of hundreds of children, lists, small nodes, and a filter for one request."""
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 300, (30_000, 5))
    if skewed:
        rows = (rng.zipf(1.3, (30_000, 5)) - 1).clip(max=299)
    index = ItemIndex.build(rows, vocab_size=300, layout=layout, head_depth=1)
    live = [None, ItemFilter.of_rows(index, rng.random(30_000) < 0.05)]
    items = JaxItems(index)
    filters = items.filters(live, 2)
    for normalise in ("full", "none") if skewed else ("level", "valid"):
        beams = Beams.start(index, 2, 40)
        for level in range(5):
            logits = rng.normal(size=(2, 40, 300)).astype(np.float32)
            after = index.beam_step(beams, logits, normalise=normalise, filters=live)  # type: ignore[arg-type]
            got = items.beam_step(beams, logits, normalise=normalise, filters=filters, level=level)
            same_beams(after, got, 0.0 if normalise == "none" else 8e-6)
            beams = after


def test_other_widths() -> None:
    rng = np.random.default_rng(1)
    index = ItemIndex.build(rng.integers(0, 5, (40, 3)), vocab_size=5)
    items, beams = JaxItems(index), Beams.start(index, 2, 4)
    for width in (1, 9, 200):
        logits = rng.integers(-2, 3, (2, beams.nodes.shape[1], 5)).astype(np.float32)
        after = index.beam_step(beams, logits, width=width, normalise="none")
        same_beams(after, items.beam_step(beams, logits, width=width, normalise="none"))
        beams = after


def test_bad_logits_cost_the_beam_only() -> None:
    index = ItemIndex.build(np.asarray([[0, 1], [1, 0], [1, 1], [2, 2]]), vocab_size=3)
    items = JaxItems(index)
    logits = np.zeros((1, 3, 3), np.float32)
    for normalise in ("full", "level", "valid", "none"):
        beams = items.beam_step(items.start(1, 3), logits, normalise=normalise, level=0)
        for bad in (float("nan"), float("inf")):
            broken = logits.copy()
            broken[0, 1, 0] = bad
            after = items.beam_step(beams, broken, normalise=normalise, level=1)
            assert after.valid.tolist() == [[True, True, False]]
            assert after.sequences[0, :2].tolist() == [[0, 1], [2, 2]]


def test_the_same_node_twice() -> None:
    rows = np.asarray([[0, code] for code in range(50)] + [[1, 0], [2, 0]])
    index = ItemIndex.build(rows, vocab_size=64, head_depth=0, small=1)
    items = JaxItems(index)
    logits = np.zeros((1, 3, 64), np.float32)
    start = index.beam_step(Beams.start(index, 1, 3), logits)
    twice = replace(start, nodes=start.nodes[:, [0, 0, 1]])
    same_beams(index.beam_step(twice, logits), items.beam_step(twice, logits, distinct=False), 2e-6)
    assert not items.beam_step(twice, logits, level=1).valid.any()  # the promise is broken: all missing, none wrong


def test_in_programs_of_ones_own() -> None:
    """Traced once a level inside ``jit``; a whole search as one ``scan``; JAX without 64 bits, nodes with them."""
    rng = np.random.default_rng(3)
    index = ItemIndex.build(rng.integers(0, 16, (2_000, 4)), vocab_size=16, head_depth=1)
    other = ItemFilter.of_rows(index, rng.random(2_000) < 0.3)
    items, traced = JaxItems(index), []

    @partial(jax.jit, static_argnames="level")
    def step(items: JaxItems, beams: Beams, logits: Any, filters: Any, level: int) -> Beams:
        traced.append(level)
        return items.beam_step(beams, logits + 0, filters=filters, level=level)

    @jax.jit
    def search(items: JaxItems, logits: Any, filters: Any) -> Any:
        def body(beams: Beams, logits: Any) -> Any:
            after = items.beam_step(beams, logits, filters=filters)
            return replace(after, sequences=beams.sequences), (after.parents, after.tokens)

        return jax.lax.scan(body, items.start(2, 5), logits)

    assert not jax.config.jax_enable_x64
    for live in ([other, None], [None, other]):
        filters = items.filters(live, 2)
        logits = rng.normal(size=(4, 2, 5, 16)).astype(np.float32)
        wanted, beams = Beams.start(index, 2, 5), items.start(2, 5)
        for level in range(4):
            wanted = index.beam_step(wanted, logits[level], filters=live)
            beams = step(items, beams, logits[level], filters, level=level)
            same_beams(wanted, beams, 2e-6)
        last, (parents, tokens) = search(items, logits, filters)
        np.testing.assert_array_equal(last.nodes, wanted.nodes)
        assert last.nodes.dtype == np.int64
        np.testing.assert_array_equal(parents[-1], wanted.parents)
        np.testing.assert_array_equal(tokens[-1], wanted.tokens)
    assert traced == [0, 1, 2, 3]


def test_programs_hold_no_arrays() -> None:
    """Neither as constants, nor as what JAX keeps beside them: an index that is dropped can be freed."""
    index = ItemIndex.build(np.random.default_rng(0).integers(0, 1000, (100_000, 3)), vocab_size=1000)
    items = JaxItems(index)
    jitted = jax.jit(lambda items, beams, logits: items.beam_step(beams, logits))
    text = jitted.lower(items, items.start(1, 2), np.zeros((1, 2, 1000), np.float32)).as_text()
    assert len(text) < index.layout.columns.nbytes
    static = jax.tree.structure(items).node_data()[1]
    assert not any(isinstance(value, jax.Array) for value in vars(static.tries[0]).values())


def test_bad_arguments() -> None:
    index = ItemIndex.build(np.asarray([[0, 1]]), vocab_size=3)
    items, other = JaxItems(index), ItemIndex.build(np.asarray([[0], [1]]))
    beams, logits = items.start(1, 2), np.zeros((1, 2, 3), np.float32)
    with pytest.raises(ItemError, match="logits"):
        items.beam_step(beams, np.zeros((1, 2, 4), np.float32))
    with pytest.raises(ItemError, match="logits"):
        items.beam_step(beams, np.zeros((1, 2, 3), np.int64))
    with pytest.raises(ItemError, match="normalise"):
        items.beam_step(beams, logits, normalise="some")
    with pytest.raises(ItemError, match="0 beams"):
        items.beam_step(beams, logits, width=0)
    with pytest.raises(ItemError, match="int64"):
        items.allowed(beams.nodes.astype(np.int32))
    with pytest.raises(ItemError, match="tokens"):
        items.advance(beams.nodes, logits[:, :, 0])
    with pytest.raises(ItemError, match="a filter of another index"):
        items.filters(ItemFilter.of_leaves(other, np.ones(other.n_leaves, np.bool_)), 1)
    with pytest.raises(ItemError, match="requests"):
        items.allowed(beams.nodes, items.filters([ItemFilter.of_leaves(index, np.ones(1, np.bool_))] * 2, 2))
    prefixes = ItemIndex.build((np.asarray([0, 0, 1]), np.asarray([0, 1, 3])), vocab_size=3)
    with pytest.raises(ItemError, match="end_token"):
        JaxItems(prefixes).beam_step(beams, logits)
