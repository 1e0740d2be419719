"""``wfsa check``: is a text accepted, and if not, where, what was expected there, and why."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from wfsa.cli import artifact_arguments, readable
from wfsa.cli.files import read_bytes
from wfsa.errors import WfsaError
from wfsa.vocab import Vocab

EXAMPLES: Final = """\
examples:
  wfsa check person.wfsa '{"name": "Ada"}'
  wfsa check person.wfsa --file answer.json
  some-program | wfsa check person.wfsa --file -

Exit code 0 if the text is accepted, 1 if not.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    artifact_arguments.add_arguments(parser)
    parser.add_argument("text", nargs="?", help="the text itself")
    parser.add_argument("--file", type=Path, help="read the text from a file, or - for standard input")


def run(arguments: argparse.Namespace) -> int:
    if (arguments.text is None) == (arguments.file is None):
        raise WfsaError("give either the text or --file")
    text = os.fsencode(arguments.text) if arguments.file is None else read_bytes(arguments.file)
    constraint, vocab = artifact_arguments.load(arguments)
    state = constraint.start()
    offset = 0
    while offset < len(text) and state.commit_bytes(text[offset : offset + 1]):
        offset += 1
    if offset == len(text) and state.is_accepting():
        print(f"accepted: {len(text)} bytes")
        return 0
    place = readable.place_text(text, offset)
    if offset == len(text):
        print(f"not accepted: the text ends too early, at {place}")
    else:
        print(f"not accepted: refused at {place}: {readable.byte_name(text[offset])}")
    print(f"  text      {readable.context_text(text, offset)}")
    print(f"  expected  {readable.allowed_text(vocab, state.get_mask().ids())}")
    refused = _refused_token(vocab, text[offset:])
    if refused is not None:
        print(f"  because   {state.explain(refused)}")
    return 1


def _refused_token(vocab: Vocab, rest: bytes) -> int | None:
    """The shortest token that begins ``rest``: its refusal is the text's."""
    beginnings = {rest[:length] for length in range(1, min(len(rest), 8) + 1)}
    special = set(vocab.special_ids.tolist())
    found = [i for i, token in enumerate(vocab.tokens) if token in beginnings and i not in special]
    return min(found, key=lambda i: (len(vocab.tokens[i]), i), default=None)
