"""One constrained step on a device: torch (eager, compiled, in a CUDA graph) and the fused kernels, beside none.

    python -m benches.items_device --device cuda [--items 1e5 1e6 1e7] [--kinds uniform zipf] [--beams 2x70 64x512]

Arms, on the same logits float32[B, M, V] and distinct nodes of ``--level`` (random items' prefixes, so hubs weigh in):

    read        logits.logsumexp(-1): what reading the logits once costs
    free        log-softmax, cumulative scores, top M of M·V: beam search without a constraint
    torch       TorchItems.beam_step          compiled    the same under torch.compile
    triton      TritonItems.beam_step         … graph     replayed from a CUDA graph

Each constrained arm is first compared with the compiled CPU step. Times: CUDA events (perf_counter on a CPU) round
one call, medians with the 10th and 90th percentiles of ``--rounds`` calls, arms in turn. On a CPU (one thread) the
graphs and the kernels are left out (Triton's interpreter is no measure of anything), and ``compiled`` unless
``--compile`` is given.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benches import items_catalogues
from benches.machine import describe
from benches.markdown import RESULTS, facts, number, table, write
from wfsa.items import Beams, ItemIndex
from wfsa.items.torch_backend import TorchItems

Arm = Callable[[], Any]


def start_beams(index: ItemIndex, rows: Any, level: int, n_requests: int, width: int, seed: int = 0) -> Beams:
    """Beams at different nodes of a level, prefixes of random items; missing where a request runs out of nodes."""
    rng = np.random.default_rng(seed)
    nodes = np.full((n_requests, width), -1, np.int64)
    for request in range(n_requests):
        picked = rows[rng.integers(0, len(rows), 8 * width)]
        at = np.full(len(picked), index.root, np.int64)
        for step in range(level):
            at = index.advance(at, picked[:, step].astype(np.int32))
        different = rng.permutation(np.unique(at))[:width]
        nodes[request, : len(different)] = different
    scores = np.where(nodes >= 0, rng.normal(size=nodes.shape), -np.inf).astype(np.float32)
    none = np.zeros(nodes.shape, np.int32)
    return Beams(nodes, scores, nodes >= 0, none, none, np.zeros((*nodes.shape, level), np.int32))


def graph_of(arm: Arm) -> Arm:
    """The arm captured in a CUDA graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            arm()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        arm()
    return graph.replay


def clock(arms: dict[str, Arm], rounds: int, cuda: bool) -> dict[str, list[float]]:
    """Microseconds of each call."""
    times: dict[str, list[float]] = {name: [] for name in arms}
    for arm in arms.values():
        arm()
    for _ in range(rounds):
        for name, arm in arms.items():
            if cuda:
                torch.cuda.synchronize()
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                arm()
                end.record()
                torch.cuda.synchronize()
                times[name].append(begin.elapsed_time(end) * 1e3)
            else:
                began = time.perf_counter()
                arm()
                times[name].append((time.perf_counter() - began) * 1e6)
    return times


def check(want: Beams, got: Beams) -> None:
    """The same beams are there, with scores equal to a few units in the last place."""
    assert np.array_equal(want.valid, got.valid.cpu().numpy())
    np.testing.assert_allclose(got.scores.cpu().numpy(), want.scores, atol=2e-5)
    same = (want.nodes == got.nodes.cpu().numpy()).mean()
    assert same > 0.99, f"{1 - same:.1%} of the nodes differ"


def arms_of(index: ItemIndex, rows: Any, shape: tuple[int, int], args: argparse.Namespace) -> dict[str, Arm]:
    cuda = args.device != "cpu"
    beams = start_beams(index, rows, args.level, *shape)
    logits = np.random.default_rng(1).normal(size=(*shape, index.logits_size)).astype(np.float32)
    want = index.beam_step(beams, logits, normalise=args.normalise)
    given = Beams(*(torch.tensor(getattr(beams, name), device=args.device) for name in Beams.__slots__))
    x = torch.tensor(logits, device=args.device)

    def free() -> Any:
        scores = given.scores[:, :, None] + torch.log_softmax(x, -1)
        return scores.flatten(1).topk(shape[1], dim=1)

    items = TorchItems(index, args.device)
    step = {"normalise": args.normalise, "level": args.level}
    arms: dict[str, Arm] = {
        "read": lambda: torch.logsumexp(x, -1),
        "free": free,
        "torch": lambda: items.beam_step(given, x, **step),
    }
    if cuda or args.compile:
        compiled = torch.compile(items.beam_step, fullgraph=True, dynamic=False)
        arms["compiled"] = lambda: compiled(given, x, **step)
    if cuda:
        from wfsa.items.triton_backend import TritonItems

        fused = TritonItems(index, args.device)
        arms["triton"] = lambda: fused.beam_step(given, x, normalise=args.normalise)
    for name in arms:
        if name not in ("read", "free"):
            check(want, arms[name]())
    if cuda:
        arms |= {f"{name} graph": graph_of(arm) for name, arm in arms.items()}
    return arms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--items", type=float, nargs="+", default=[1e5, 1e6, 1e7, 2e7], metavar="N")
    parser.add_argument("--kinds", nargs="+", default=["uniform", "zipf"], choices=items_catalogues.KINDS)
    parser.add_argument("--codes", type=int, default=2048, metavar="V")
    parser.add_argument("--levels", type=int, default=8, metavar="L")
    parser.add_argument("--level", type=int, default=2, help="the level of the step, from 0")
    parser.add_argument("--beams", nargs="+", default=["2x70", "16x256", "64x512"], metavar="BxM")
    parser.add_argument("--normalise", default="full")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--compile", action="store_true", help="torch.compile on a CPU, too")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.device == "cpu":
        torch.set_num_threads(1)
    machine = describe()
    if args.device != "cpu":
        machine["device"] = torch.cuda.get_device_name()
    machine["torch"] = torch.__version__
    lines: list[dict[str, Any]] = []
    for n in map(int, args.items):
        for kind in args.kinds:
            rows = items_catalogues.rows(kind, n, args.levels, args.codes)
            index = ItemIndex.build(rows, vocab_size=args.codes, item_ids="rank")
            for text in args.beams:
                n_requests, width = map(int, text.split("x"))
                arms = arms_of(index, rows, (n_requests, width), args)
                for name, times in clock(arms, args.rounds, args.device != "cpu").items():
                    low, middle, high = np.percentile(times, [10, 50, 90]).tolist()
                    lines.append(
                        {"items": n, "kind": kind, "beams": text, "arm": name, "p10": low, "p50": middle, "p90": high}
                    )
                    print(
                        f"{n:>11,} {kind:9} {text:7} {name:15} {middle:10.1f} µs  ({low:.1f} .. {high:.1f})", flush=True
                    )
    head = ["items", "kind", "beams", "arm", "µs p50", "p10", "p90"]
    cells = [
        [f"{x['items']:,}", x["kind"], x["beams"], x["arm"], *map(number, (x["p50"], x["p10"], x["p90"]))]
        for x in lines
    ]
    title = (
        f"# A step over items on a device: V = {args.codes}, L = {args.levels}, level {args.level}, {args.normalise}"
    )
    print(write(args.out, "items-device", [title, facts(machine), table(head, cells)], lines))


if __name__ == "__main__":
    main()
