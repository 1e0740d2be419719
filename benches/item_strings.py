"""compile_items on synthetic names: build, save and load, memory, masks at every step of random names.

    python -m benches.item_strings [--names 5000000] [--vocab ../shared/data/vocabs/llama3.npz] [--hub 4096]

Names are brand, type, attributes and a number, Zipf-skewed, as in a shop's catalogue. Each is cut into the longest
tokens from the left; the text is checked to be accepted. A mask's time is one ``fill_bitmask`` into a ready buffer, in
wall time and in the thread's own processor time (on a shared machine the tail of the wall time is the scheduler's).
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import wfsa


def names(n: int, seed: int = 0) -> list[str]:
    """n different names of about 30 bytes."""
    rng = np.random.default_rng(seed)
    syllables = np.asarray([a + b + c for a in "bcdfgklmnprstv" for b in "aeiou" for c in ("", "n", "r", "s", "l")])

    def words(count: int, parts: int) -> list[str]:
        return ["".join(syllables[row]).capitalize() for row in rng.integers(0, len(syllables), (count, parts))]

    brands, kinds, traits = words(20_000, 2), words(500, 2), words(3_000, 3)
    found: set[str] = set()
    while len(found) < n:
        m = n - len(found)
        b, k, t = (np.minimum(rng.zipf(1.2, m) - 1, top - 1) for top in (20_000, 500, 3_000))
        numbers = rng.integers(1, 10_000, m)
        parts = zip(b.tolist(), k.tolist(), t.tolist(), numbers.tolist(), strict=True)
        found.update(f"{brands[x]} {kinds[y]} {traits[z]} {w}" for x, y, z, w in parts)
    return sorted(found)


def main() -> None:
    shared = Path(__file__).resolve().parent.parent.parent / "shared/data/vocabs/llama3.npz"
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", type=int, default=5_000_000)
    parser.add_argument("--vocab", default=os.fspath(shared))
    parser.add_argument("--hub", type=int, default=4096)
    parser.add_argument("--walks", type=int, default=3000)
    options = parser.parse_args()
    vocab = wfsa.Vocab.from_file(options.vocab)
    texts = names(options.names)
    rng = np.random.default_rng(1)
    shuffled = [texts[i] for i in rng.permutation(len(texts))]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu_began = time.perf_counter(), time.process_time()
    constraint = wfsa.compile_items(shuffled, vocab, hub=options.hub)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    stats = constraint.stats
    held = stats["bytes"] + 16 * stats["strings"] + 4 * stats["hub_tokens"]
    print(f"{len(texts):,} names of {stats['bytes'] / len(texts):.1f} bytes, {vocab.size:,} logits, hub {options.hub}")
    print(f"build {seconds:.2f} s ({cpu_seconds:.2f} s of processor), peak +{peak / 1024:.0f} MiB")
    print(f"holds {held / 2**20:.0f} MiB; {stats}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "names.wfsa")
        for label, work in (("save", lambda: constraint.save(path)), ("load", lambda: wfsa.load(path, vocab))):
            began, cpu_began = time.perf_counter(), time.process_time()
            work()
            seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
            print(f"{label} {seconds:.2f} s ({cpu_seconds:.2f} s of processor), {path.stat().st_size / 2**20:.0f} MiB")

    longest: dict[bytes, int] = {}
    special = set(vocab.special_ids.tolist())
    for token_id, data in enumerate(vocab.tokens):
        if token_id not in special:
            longest.setdefault(data, token_id)
    end = int(vocab.eos_ids[0])
    buffer = np.zeros(-(-vocab.size // 32), np.int32)
    first, masks, commits, own = [], [], [], []
    for at in rng.integers(0, len(texts), options.walks).tolist():
        data, state, done = texts[at].encode(), constraint.start(), 0
        while done < len(data):
            size = next(k for k in range(min(len(data) - done, 64), 0, -1) if data[done : done + k] in longest)
            clock, cpu = time.perf_counter_ns(), time.thread_time_ns()
            state.fill_bitmask(buffer)
            own.append(time.thread_time_ns() - cpu)
            (masks if done else first).append(time.perf_counter_ns() - clock)
            token = longest[data[done : done + size]]
            assert buffer[token // 32] >> token % 32 & 1
            clock = time.perf_counter_ns()
            assert state.commit(token)
            commits.append(time.perf_counter_ns() - clock)
            done += size
        assert state.is_accepting() and state.commit(end)
        assert texts[at] == shuffled[constraint_item(constraint, data)]
    for label, times in (("first mask", first), ("later masks", masks), ("commits", commits), ("masks, cpu", own)):
        us = np.percentile(np.asarray(times) / 1e3, [50, 99, 99.9, 100])
        print(
            f"{label:12} n={len(times):6} p50 {us[0]:8.1f}  p99 {us[1]:8.1f}  p99.9 {us[2]:8.1f}  max {us[3]:8.1f} µs"
        )


def constraint_item(constraint: wfsa.Constraint, data: bytes) -> int:
    state = constraint.start()
    assert state.commit_bytes(data)
    return state.item()  # type: ignore[attr-defined, no-any-return]


if __name__ == "__main__":
    main()
