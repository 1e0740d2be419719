"""``wfsa mask``: shows the tokens that may follow a prefix."""

from __future__ import annotations

import argparse
import json
import os
from typing import Final

import numpy as np

from wfsa.cli import artifact_arguments, readable
from wfsa.errors import WfsaError

EXAMPLES: Final = """\
examples:
  wfsa mask person.wfsa '{"age": '
  wfsa mask person.wfsa '' --limit 10
  wfsa mask person.wfsa '{' --ids
  wfsa mask person.json '{"age": '         # without --vocab: every byte is a token
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    artifact_arguments.add_arguments(parser)
    parser.add_argument("prefix", help="the text so far")
    parser.add_argument("--limit", type=int, default=40, help="the most tokens to list (default: %(default)s)")
    parser.add_argument("--ids", action="store_true", help="print only the ids, one per line")
    parser.add_argument("--json", action="store_true", help="print one object of JSON, with all ids")


def run(arguments: argparse.Namespace) -> int:
    constraint, vocab = artifact_arguments.load(arguments, says_bytes=True)
    state = constraint.start()
    prefix = os.fsencode(arguments.prefix)
    for offset in range(len(prefix)):
        if not state.commit_bytes(prefix[offset : offset + 1]):
            place, shown = readable.place_text(prefix, offset), readable.context_text(prefix, offset)
            raise WfsaError(f"the prefix is refused at {place}: {shown}")
    ids = np.asarray(state.get_mask().ids(), np.int32)
    if arguments.json:
        first = [int(byte) for byte in np.flatnonzero(readable.first_bytes(vocab, ids))]
        result = {"ids": ids.tolist(), "of": vocab.logits_size, "may_end": state.is_accepting(), "first_bytes": first}
        print(json.dumps(result))
        return 0
    if arguments.ids:
        print("\n".join(map(str, ids.tolist())))
        return 0
    print(
        f"{len(ids):,} of {vocab.logits_size:,} tokens; "
        f"the text may {'end' if state.is_accepting() else 'not end'} here"
    )
    print(f"next byte: {readable.byte_set_text(readable.first_bytes(vocab, ids)) or 'none'}")
    for token_id in readable.shortest_tokens(vocab, ids, arguments.limit):
        role = (
            "  (end)"
            if token_id in vocab.eos_token_ids
            else "  (special)"
            if token_id in vocab.special_token_ids
            else ""
        )
        print(f"{token_id:>8}  {readable.token_text(vocab.tokens[token_id])}{role}")
    if len(ids) > arguments.limit:
        print(f"     ...  {len(ids) - arguments.limit:,} more (--limit, --ids)")
    return 0
