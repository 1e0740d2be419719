"""What Prometheus reads of a server."""

from __future__ import annotations

import urllib.request

import pytest

import wfsa
from wfsa.store import ConstraintStore

prometheus = pytest.importorskip("prometheus_client")
from wfsa.metrics import Metrics  # noqa: E402


def test_metrics_over_http(vocab: wfsa.Vocab) -> None:
    metrics = Metrics(prometheus.CollectorRegistry())
    store = ConstraintStore(None, vocab, observe=metrics.observe)
    metrics.watch(store)
    states = [store.get("a+", kind="regex").start(), store.get("a+", kind="regex").start()]
    metrics.count_states(states.__len__)
    with metrics.masks():
        states[0].get_mask()
    port = metrics.serve(0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines['wfsa_constraint_seconds_count{from="compile"}'] == "1.0"
    assert lines['wfsa_constraint_seconds_count{from="memory"}'] == "1.0"
    assert lines["wfsa_masks_seconds_count"] == "1.0" and lines["wfsa_states"] == "2.0"
    assert float(lines['wfsa_store_bytes{level="memory"}']) == store.stats().memory_bytes > 0
    assert lines['wfsa_store_entries{level="memory"}'] == "1.0"
    assert lines['wfsa_store_events_total{event="errors"}'] == "0.0" and float(lines["wfsa_cache_bytes"]) > 0
