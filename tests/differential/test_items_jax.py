"""The JAX back end against the NumPy reference. JAX is left as it comes: without 64 bits outside the back end."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.differential.item_backends import Case, all_nodes, cases, same_beams, searches
from wfsa.errors import ItemError
from wfsa.items import Beams, ItemFilter, ItemIndex

jax = pytest.importorskip("jax", reason="NO JAX: its back end was not run")

from wfsa.items.jax_backend import JaxItems  # noqa: E402

# Each example's programs are compiled anew, a second or two each.
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
        np.testing.assert_array_equal(items.allowed(nodes, filters), index.allowed(nodes, per_node, backend="numpy"))

        logits = np.random.default_rng(case.seed).normal(size=(n, index.logits_size)).astype(np.float32)
        masked = items.mask_logits(logits, nodes, filters)
        np.testing.assert_array_equal(masked, index.mask_logits(logits, nodes, per_node, backend="numpy"))

        tokens, children = (np.asarray(x) for x in items.children(nodes, filters))
        indptr, want_tokens, want_children = index.children(nodes, per_node, backend="numpy")
        keep = tokens >= 0
        np.testing.assert_array_equal(keep.sum(1), np.diff(indptr))
        np.testing.assert_array_equal(tokens[keep], want_tokens)
        np.testing.assert_array_equal(children[keep], want_children)

        every = np.arange(-1, index.logits_size + 1, dtype=np.int64)
        grid, choice = np.repeat(nodes[:, None], len(every), 1), np.repeat(every[None], n, 0)
        got = items.advance(grid, choice, filters)
        np.testing.assert_array_equal(got, index.advance(grid, choice, per_node, backend="numpy"))


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
