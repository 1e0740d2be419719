"""compile_texts on synthetic names: build, save and load, memory, masks at every step of random names.

    python -m benches texts [--names 5e6] [--vocab llama3] [--hub 4096] [--enum lazy]

Names are brand, type, attributes and a number, Zipf-skewed, as in a shop's catalogue. Each is cut into the longest
tokens from the left; the text is checked to be accepted. A mask's time is one ``fill_bitmask`` into a ready buffer, in
wall time and in the thread's own processor time (on a shared machine the tail of the wall time is the scheduler's).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import wfsa
from benches.machine import describe
from benches.markdown import facts, write
from benches.recorded_data import DATA, existing


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--names", type=float, default=5e6, help="how many (5e6)")
    parser.add_argument("--hub", type=int, default=4096, help="as in wfsa.compile_texts (4096)")
    parser.add_argument("--walks", type=int, default=3000, help="names that are written (3000)")
    parser.add_argument("--enum", choices=["lazy", "ahead"], help="as the enum of a property of a schema, instead")


def main(args: argparse.Namespace) -> Path:
    where = describe()
    if args.quick:
        args.names, args.walks = 1e4, 100
    said = list(measured(args))
    name = f"texts-enum-{args.enum}" if args.enum else "texts"
    title = f"# {int(args.names):,} names, vocabulary {args.vocab}"
    sections = [title, facts(where), "\n".join(f"- {line}" for line in said)]
    return write(args.out, name, sections, [{"said": x} for x in said])


def measured(options: argparse.Namespace) -> Iterator[str]:
    """One line of text for each thing measured."""
    vocab = wfsa.Vocab.from_file(existing(DATA / "vocabs" / f"{options.vocab}.npz"))
    texts = names(int(options.names))
    rng = np.random.default_rng(1)
    shuffled = [texts[i] for i in rng.permutation(len(texts))]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu_began = time.perf_counter(), time.process_time()
    if options.enum:
        schema = {"type": "object", "properties": {"name": {"enum": shuffled}, "count": {"type": "integer"}}}
        schema |= {"required": ["name", "count"], "additionalProperties": False}
        constraint = wfsa.compile_json_schema(schema, vocab, mode=options.enum)
    else:
        constraint = wfsa.compile_texts(shuffled, vocab, hub=options.hub)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    yield f"{len(texts):,} names of {sum(map(len, texts)) / len(texts):.1f} bytes, {vocab.size:,} logits"
    yield f"build {seconds:.2f} s ({cpu_seconds:.2f} s of processor), peak +{peak / 1024:.0f} MiB; {constraint.stats}"
    if not options.enum:
        held = constraint.stats["bytes"] + 16 * constraint.stats["texts"] + 4 * constraint.stats["hub_tokens"]
        yield f"holds {held / 2**20:.0f} MiB"
        yield from save_and_load(constraint, vocab)
    yield from walk(constraint, vocab, texts, shuffled, options)
    yield f"peak after the walks +{(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f} MiB"


def save_and_load(constraint: wfsa.Constraint, vocab: wfsa.Vocab) -> Iterator[str]:
    """The time of both, and the size of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "names.wfsa")
        for label, work in (("save", lambda: constraint.save(path)), ("load", lambda: wfsa.load(path, vocab))):
            began, cpu_began = time.perf_counter(), time.process_time()
            work()
            seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
            yield f"{label} {seconds:.2f} s ({cpu_seconds:.2f} s of processor), {path.stat().st_size / 2**20:.0f} MiB"


def walk(
    constraint: wfsa.Constraint, vocab: wfsa.Vocab, texts: list[str], shuffled: list[str], options: argparse.Namespace
) -> Iterator[str]:
    """Write random names in the longest tokens: the times of masks and commits."""
    rng = np.random.default_rng(2)
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
        if options.enum:
            data = b'{"name":"' + data + b'","count":7}'
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
        assert options.enum or texts[at] == shuffled[item_of(constraint, data)]
    for label, times in (("first mask", first), ("later masks", masks), ("commits", commits), ("masks, cpu", own)):
        us = np.percentile(np.asarray(times) / 1e3, [50, 99, 99.9, 100])
        yield f"{label}: n = {len(times)}, µs p50 {us[0]:.1f}, p99 {us[1]:.1f}, p99.9 {us[2]:.1f}, max {us[3]:.1f}"


def item_of(constraint: wfsa.Constraint, data: bytes) -> int:
    state = constraint.start()
    assert state.commit_bytes(data)
    return state.text_index()  # type: ignore[attr-defined, no-any-return]
