"""Bad calls and bad files: the project's own errors, and the state or file as it was."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import wfsa
from wfsa import artifact

VOCAB = wfsa.Vocab([b"a", b"b", b"ab", b"</s>"], special_ids=[3], eos_ids=[3], size=40)


@pytest.fixture
def state() -> wfsa.State:
    return wfsa.compile_regex("a+b", VOCAB).start()


@pytest.mark.parametrize(
    ("buffer", "row"),
    [
        (np.zeros(2, np.int64), None),
        (np.zeros(2, np.float32), None),
        (np.zeros(1, np.int32), None),
        (np.zeros(4, np.int32)[::2], None),
        (np.zeros((2, 2), np.int32), None),
        (np.zeros((2, 2), np.int32), 2),
        (np.zeros((2, 2), np.int32), -1),
        (np.zeros((1, 1, 2), np.int32), None),
        (np.frombuffer(bytes(8), np.int32), None),
        ("no buffer", None),
    ],
)
def test_a_buffer_that_does_not_fit(state: wfsa.State, buffer: object, row: int | None) -> None:
    before = buffer.copy() if isinstance(buffer, np.ndarray) else buffer
    with pytest.raises(wfsa.StateError):
        state.fill_bitmask(buffer, row=row)
    assert np.array_equal(before, buffer) if isinstance(buffer, np.ndarray) else True


def test_wide_rows_and_batches(state: wfsa.State) -> None:
    batch = np.full((3, 4), -1, np.int32)
    wfsa.fill_bitmasks([state, state.fork()], batch, threads=2, rows=[2, 0])
    assert batch[0].tolist() == batch[2].tolist() == [0b101, 0, 0, 0]
    assert batch[1].tolist() == [-1] * 4
    with pytest.raises(wfsa.StateError):
        wfsa.fill_bitmasks([state, state], batch, rows=[1, 1])
    with pytest.raises(wfsa.StateError):
        wfsa.fill_bitmasks([state], batch, rows=[3])


def test_calls_out_of_order(state: wfsa.State) -> None:
    for token_id in (-1, 4, 1 << 40):
        with pytest.raises(wfsa.StateError, match="out of range"):
            state.commit(token_id)
    with pytest.raises(wfsa.StateError, match="cannot roll back 1"):
        state.rollback(1)
    assert not state.commit(1) and state.n_commits == 0
    assert state.commit(2) and state.commit(3) and state.is_finished()
    with pytest.raises(wfsa.StateError, match="after the end"):
        state.commit(0)
    assert len(state.get_mask()) == 0
    state.rollback(2)
    assert state.get_mask().ids().tolist() == [0, 2]


def test_a_damaged_file(tmp_path: Path) -> None:
    data = artifact.to_bytes(wfsa.compile_regex("a+b", VOCAB))
    path = tmp_path / "x.wfsa"
    rng = random.Random(1)
    for n in [0, 1, 7, 8, 9, *rng.sample(range(len(data)), 60)]:
        path.write_bytes(data[:n])
        with pytest.raises(wfsa.ArtifactError):
            wfsa.load(path, VOCAB)
    for n in rng.sample(range(len(data)), 200):
        path.write_bytes(data[:n] + bytes([data[n] ^ 1 << rng.randrange(8)]) + data[n + 1 :])
        with pytest.raises(wfsa.ArtifactError):
            wfsa.load(path, VOCAB)


def test_the_wrong_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "x.wfsa"
    wfsa.compile_regex("a+b", VOCAB).save(path)
    with pytest.raises(wfsa.ArtifactError, match="another vocabulary"):
        wfsa.load(path, wfsa.Vocab([b"a", b"c", b"</s>"], special_ids=[2], eos_ids=[2]))


def test_altered_tables_never_crash() -> None:
    """Random values in random tables: refused, or a constraint that answers without a crash."""
    core = wfsa.compile_gbnf('root ::= "[" (root ("," root)*)? "]" | [0-9]+', VOCAB)._core
    arrays = core.to_arrays()
    rng = random.Random(2)
    for _ in range(300):
        name = rng.choice(sorted(n for n, a in arrays.items() if a.size))
        bad = arrays[name].copy()
        bad[rng.randrange(bad.size)] = rng.choice([-2, -1, 0, 1, 2, 7, 63, 255, 1 << 20, (1 << 31) - 1])
        try:
            loaded = type(core).from_arrays(VOCAB.core, {**arrays, name: bad})
            state = loaded.start()
            state.get_mask()
            for token_id in (0, 1, 2):
                state.fork().commit(token_id)
        except (wfsa.WfsaError, RuntimeError):
            pass
