"""``python -m benches [BENCH | all] [--quick]``; BENCH is one of _BENCHES below.

The rules are in benches/__init__.py.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benches import vllm_report, vocabularies
from benches.decoding import disc, nezha, trie
from benches.fleet import fleet
from benches.grammars import grammar_run, reference
from benches.items import bitmaps, indexes, latency, shard_builds, split_index, texts
from benches.markdown import RESULTS
from benches.schemas import (
    along,
    batch_masks,
    budgets,
    budgets_smollm2,
    corpus,
    freedoms,
    packages,
    rival_keywords,
    sample_run,
    since_compile,
    unique_items,
)

_EXAMPLES = """examples:
  python -m benches                                   everything; an hour on two cores, most of it XGrammar's
  python -m benches all --quick --out /tmp/quick      20 schemas, few texts, short limits: does it run?
  python -m benches schemas -n 50 --engines wfsa wfsa-lazy llguidance
  python -m benches corpus --every 20                 every 20th of 9,090 schemas; without --every some hours
  python -m benches grammars --cases sql json-lark --engines wfsa glrmask
  python -m benches vocab --only llama3 gemma3
  python -m benches items-latency --device cuda --sweeps items
  python -m benches items --items 1e5 1e6 --kinds uniform zipf --beams 2x70 16x256

Results go to benches/results/NAME.md, with the raw lines in NAME.jsonl beside."""

_BENCHES = {
    "schemas": (sample_run, "JSON Schemas of the recorded corpus"),
    "corpus": (corpus, "every JSON Schema of the recorded corpus: coverage, compile times, reasons"),
    "freedoms": (freedoms, "members in any order and values in any spelling: what each costs, and what it takes in"),
    "packages": (packages, "schemas that packages of PyPI and npm ship, installed by name"),
    "unique-items": (unique_items, "what comparing items costs under uniqueItems"),
    "batch": (batch_masks, "all masks of a step of 256 states, in one call"),
    "budgets": (budgets, "texts that are complete within so many tokens, and what their masks cost"),
    "budgets-smollm2": (budgets_smollm2, "documents of a small model: complete, and valid, within so many tokens"),
    "since-compile": (since_compile, "masks against the time since compiling, and while other schemas compile"),
    "along": (along, "every mask along one document, of all engines"),
    "rival-keywords": (rival_keywords, "what each engine makes of each keyword of JSON Schema"),
    "fleet": (fleet, "a store of constraints that processes share, the farm that fills it, a day of a fleet"),
    "reference": (reference, "the published construction beside the engine and GLRMask, over growing vocabularies"),
    "grammars": (grammar_run, "Lark and GBNF grammars over real and made texts"),
    "vocab": (vocabularies, "building every recorded vocabulary"),
    "decoding-disc": (disc, "unbiased sampling: distance from the truth against the number of draws"),
    "decoding-nezha": (nezha, "the self-drafting head, beside beam search"),
    "decoding-trie": (trie, "beam search on one shared KV trie, beside generate()"),
    "items": (indexes, "item indexes: build, memory, step latency, against other ways to hold a closed set"),
    "items-bitmaps": (bitmaps, "filters as Roaring bitmaps beside a bool an item: bytes, time and memory"),
    "items-ray": (shard_builds, "catalogues in shards: built on Ray, beside the builder of one machine"),
    "items-split": (split_index, "an index split by first code over devices: bytes and rounds a step, simulated"),
    "texts": (texts, "compile_texts over millions of names"),
    "vllm": (vllm_report, "backends of vLLM's structured outputs, in its engine and in its server"),
    "items-latency": (latency, "a constrained step against |C|, V and branching, on a CPU or a CUDA device"),
}

# Hours, gigabytes or another environment: only where they are asked for by name.
_BY_NAME = {
    "corpus", "items-latency", "items-ray", "packages", "texts", "rival-keywords", "vllm",
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--quick", action="store_true", help="a small sample, to see that all runs; not to be quoted")
    common.add_argument("--vocab", default="llama3", metavar="NAME", help="recorded vocabulary to use (llama3)")
    common.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER", help="for results (benches/results)")
    common.add_argument("--cpu", type=int, metavar="N", help="run everything on this one core")
    common.add_argument("--keep-samples", action="store_true", help="every single time in the raw lines (megabytes)")
    formatter = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(
        prog="python -m benches", description="The engines side by side.", epilog=_EXAMPLES, formatter_class=formatter
    )
    which = top.add_subparsers(dest="bench", metavar="BENCH")
    for name, (bench, what) in _BENCHES.items():
        bench.add_arguments(which.add_parser(name, help=what, description=bench.__doc__, parents=[common],
                                             formatter_class=formatter))  # fmt: skip
    what = "all but " + ", ".join(sorted(_BY_NAME)) + ", with their defaults; what no argument does"
    which.add_parser("all", help=what, parents=[common])
    return top


def main() -> None:
    arguments = parser()
    args = arguments.parse_args()
    if args.bench is None:
        args = arguments.parse_args(["all"])
    if args.cpu is not None:
        os.sched_setaffinity(0, {args.cpu})  # workers inherit it
    if args.bench != "all":
        print(_BENCHES[args.bench][0].main(args).read_text(encoding="utf-8"))
        return
    for name, (bench, _) in _BENCHES.items():
        if name in _BY_NAME and not (args.quick and name == "items-latency"):
            continue
        one = arguments.parse_args([name])
        for key in ("quick", "vocab", "out", "cpu", "keep_samples"):
            setattr(one, key, getattr(args, key))
        print(bench.main(one).read_text(encoding="utf-8"), flush=True)


if __name__ == "__main__":
    main()
