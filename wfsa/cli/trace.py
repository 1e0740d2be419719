"""``wfsa trace``: a text token by token: how many could have come, which were forced, what masks and commits took."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from wfsa.cli import artifact_arguments, readable, text_arguments
from wfsa.errors import StateError, WfsaError
from wfsa.vocab import Vocab
from wfsa.vocab.cut import Encoded, cut

EXAMPLES: Final = """\
examples:
  wfsa trace person.wfsa '{"name": "Ada"}'
  wfsa trace person.wfsa --file answer.json --json
  wfsa trace person.wfsa --vocab FOLDER_OF_THE_MODEL '{"name": "Ada"}'
  wfsa trace person.wfsa --ids 5018,609,794

With --vocab the text is cut by the tokenizer there, where it can be run (a tokenizer.json with the package tokenizers,
a .gguf); else into the longest tokens that fit, since an artifact does not say how its vocabulary's tokenizer cuts.
Exit code 0 if the text is accepted, 1 if not.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    artifact_arguments.add_arguments(parser)
    text_arguments.add_arguments(parser)
    parser.add_argument("--ids", metavar="ID,…", help="the tokens, in place of a text")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each token, and one for the end")


def run(arguments: argparse.Namespace) -> int:
    if arguments.ids is not None and (arguments.text is not None or arguments.file is not None):
        raise WfsaError("give either a text or --ids")
    constraint, vocab = artifact_arguments.load(arguments)
    text = b""
    if arguments.ids is not None:
        try:
            ids = [int(part) for part in arguments.ids.split(",")]
        except ValueError:
            raise WfsaError(f"--ids {arguments.ids!r} is no list of numbers") from None
    else:
        text = text_arguments.read(arguments)
        ids = cut(vocab, text, _tokenizer(arguments.vocab, vocab))
    steps, end = trace(constraint, ids)
    spelled = sum(len(vocab.tokens[step["token"]]) for step in steps)
    if "refused" not in end and spelled < len(text):  # the rest was not looked at
        because = f"no token of the vocabulary spells what stands at {readable.place_text(text, spelled)}"
        end |= {"accepted": False, "refused": None, "because": because}
    if arguments.json:
        for step in (*steps, end):
            print(json.dumps(step))
    else:
        _show(steps, end, vocab)
    return 0 if end["accepted"] else 1


def _tokenizer(path: Path | None, vocab: Vocab) -> Encoded | None:
    if path is None:
        return None
    from wfsa.explorer.vocabularies import find_encoder

    encode, _ = find_encoder(path)
    return None if encode is None else Encoded(vocab, encode)


def trace(constraint: Any, ids: list[int]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A step for each token that is committed, and how it ends; the masks are timed behind one that is not."""
    state = constraint.start()
    steps: list[dict[str, Any]] = []
    refused: dict[str, Any] = {}
    for token in ids:
        state.fork().get_mask()  # what is made on first use is made
        begin = time.perf_counter()
        mask = state.get_mask()
        mask_seconds = time.perf_counter() - begin
        if not 0 <= token < constraint.vocab.n_tokens or token not in mask:
            refused = {"refused": token, "because": state.explain(token)}
            break
        begin = time.perf_counter()
        state.commit(token)
        steps.append({
            "token": token, "text": constraint.vocab.tokens[token].decode("utf-8", "backslashreplace"),
            "choices": len(mask), "forced": len(mask) == 1, "mask_us": 1e6 * mask_seconds,
            "commit_us": 1e6 * (time.perf_counter() - begin), "tokens_to_end": _left(state),
        })  # fmt: skip
    accepted = not refused and (state.is_finished() or state.is_accepting())
    return steps, {"accepted": accepted, "tokens": len(steps), **refused}


def _left(state: Any) -> int | None:
    try:
        return int(state.min_tokens())
    except StateError:  # it is not known under this policy
        return None


def _show(steps: list[dict[str, Any]], end: dict[str, Any], vocab: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    from wfsa.cli.tables import print_table

    table = Table(box=None, pad_edge=False)
    for title in ("id", "token", "choices", "", "mask µs", "commit µs", "to the end"):
        table.add_column(title, justify="left" if title in ("token", "") else "right")
    for step in steps:
        left = "" if step["tokens_to_end"] is None else str(step["tokens_to_end"])
        table.add_row(
            str(step["token"]), Text(readable.token_text(vocab.tokens[step["token"]])), f"{step['choices']:,}",
            "forced" if step["forced"] else "", f"{step['mask_us']:.1f}", f"{step['commit_us']:.1f}", left,
            style="bold" if step["forced"] else "",
        )  # fmt: skip
    print_table(table)
    masks, commits = ([step[f"{what}_us"] for step in steps] or [0.0] for what in ("mask", "commit"))
    forced = sum(step["forced"] for step in steps)
    print(
        f"{len(steps)} tokens, {forced} forced; masks {np.median(masks):.1f} µs, at most {max(masks):.1f}; "
        f"commits {np.median(commits):.1f} µs, at most {max(commits):.1f}"
    )
    if "refused" in end:
        print(f"not accepted: {readable.printable(end['because'])}")
    else:
        print("accepted" if end["accepted"] else "not accepted: the text ends too early")
