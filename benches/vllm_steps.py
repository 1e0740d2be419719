"""Backends of vLLM's structured outputs side by side: the same requests, one backend a process.

    python -m benches.vllm_steps FOLDER --backend wfsa|xgrammar|guidance|outlines [--n 200] [--schemas]

Prints a line of JSON: requests that were taken, finished and are valid, and wall times of one process, whose engine is
in it: of each step of the engine, of the masks in it, of the whole, and of a first request alone.  Needs vLLM, for a
CPU (`make integrations` has an environment with it).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "schemas" / "dev.jsonl.gz"


def real_schemas(n: int) -> list[tuple[dict[str, Any], Callable[[str], bool]]]:
    """Real schemas of at most 3,000 characters, with their judge."""
    import jsonschema

    with gzip.open(DATA, "rt") as lines:
        schemas = [json.loads(line)["schema"] for line in lines]
    random.Random(1).shuffle(schemas)
    schemas = [one for one in schemas if len(json.dumps(one)) < 3000][:n]

    def judge(schema: Any) -> Callable[[str], bool]:
        return lambda text: jsonschema.validators.validator_for(schema)(schema).is_valid(json.loads(text))

    return [({"json": schema}, judge(schema)) for schema in schemas]


def quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = np.sort(np.asarray(seconds or [0.0])) * 1e3
    return {name: round(float(np.quantile(ordered, q)), 3) for name, q in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a model; made if it is not there")
    parser.add_argument("--backend", default="wfsa")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--schemas", action="store_true", help="real schemas instead of seven kinds of requests")
    given = parser.parse_args()
    os.environ.update(
        VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1"
    )
    from tests.integrations.tiny import save
    from tests.integrations.vllm_engine import requests

    if not given.folder.exists():
        save(given.folder)
    if given.backend == "wfsa":
        import wfsa.integrations.vllm

        wfsa.integrations.vllm.register()
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams
    from vllm.v1.structured_output import StructuredOutputManager

    masks: list[float] = []
    fill = StructuredOutputManager.grammar_bitmask

    def timed(self: Any, *args: Any) -> Any:
        begun = time.perf_counter()
        try:
            return fill(self, *args)
        finally:
            masks.append(time.perf_counter() - begun)

    StructuredOutputManager.grammar_bitmask = timed
    llm = LLM(
        str(given.folder), dtype="float32", enforce_eager=True, max_model_len=512, max_num_seqs=256,
        structured_outputs_config={"backend": given.backend},
    )  # fmt: skip
    engine = llm.llm_engine
    asked = real_schemas(given.n) if given.schemas else requests(given.n)
    prompt = "ab, ab, ab, c: "
    begun = time.perf_counter()
    warm = StructuredOutputsParams(json={"type": "object", "properties": {"first": {"type": "integer"}}})
    llm.generate([prompt], SamplingParams(max_tokens=1, structured_outputs=warm), use_tqdm=False)
    first = time.perf_counter() - begun
    masks.clear()
    taken: dict[str, Callable[[str], bool]] = {}
    begun = time.perf_counter()
    for number, (fields, judge) in enumerate(asked):
        params = SamplingParams(
            max_tokens=150, temperature=1.0, seed=number, structured_outputs=StructuredOutputsParams(**fields)
        )
        try:
            engine.add_request(str(number), prompt, params)
        except Exception:
            continue
        taken[str(number)] = judge
    admitted = time.perf_counter() - begun
    steps: list[float] = []
    answers: dict[str, Any] = {}
    while engine.has_unfinished_requests():
        at = time.perf_counter()
        for output in engine.step():
            if output.finished:
                answers[output.request_id] = output.outputs[0]
        steps.append(time.perf_counter() - at)
    ended = {name: answer for name, answer in answers.items() if answer.finish_reason == "stop"}
    valid = 0
    for name, answer in ended.items():
        try:
            valid += taken[name.split("-")[0]](answer.text)
        except ValueError:
            pass
    print(json.dumps({
        "backend": given.backend, "asked": len(asked), "taken": len(taken), "finished": len(ended), "valid": valid,
        "tokens": sum(len(answer.token_ids) for answer in answers.values()), "first s": round(first, 3),
        "admitted s": round(admitted, 2), "whole s": round(time.perf_counter() - begun, 2), "step ms": quantiles(steps),
        "masks of a step ms": quantiles(masks),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
