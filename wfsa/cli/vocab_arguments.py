"""The vocabulary on the command line: the options that name it, and the copy that lies beside an artifact.

An artifact knows its vocabulary by fingerprint only, so a command that writes one leaves a copy of the vocabulary
beside it, named by its fingerprint and so shared by all artifacts there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wfsa.cli import terminal
from wfsa.errors import VocabError
from wfsa.vocab import Vocab, byte_vocab


def add_arguments(parser: argparse.ArgumentParser, default: str | None = None, *, copies: bool = False) -> None:
    """``--vocab``, ``--eos`` and ``--logits``; ``--no-vocab-copy`` where the command leaves a copy.

    `default` says what takes the place of ``--vocab``, which is required if nothing does.
    """
    found = "" if default is None else f" (default: {default})"
    parser.add_argument(
        "--vocab",
        type=Path,
        required=default is None,
        metavar="V",
        help=f"the model's folder, or a file with its vocabulary{found}",
    )
    parser.add_argument(
        "--eos", type=int, action="append", metavar="ID", help="an end token's id, in place of those in V"
    )
    parser.add_argument("--logits", type=int, metavar="N", help="the width of the model's logits, where larger than V")
    if copies:
        parser.add_argument("--no-vocab-copy", action="store_true", help="leave no copy of the vocabulary beside OUT")


def read(arguments: argparse.Namespace) -> Vocab:
    """The vocabulary that ``--vocab`` names; WfsaError where nothing is there."""
    if not arguments.vocab.exists():
        raise VocabError(
            f"--vocab {arguments.vocab}: no such file or folder; a model's folder, a tokenizer.json, a .gguf, a "
            ".tiktoken, a SentencePiece .model, an .npz or a saved .vocab is wanted, and nothing is downloaded"
        )
    return Vocab.from_file(arguments.vocab, eos_ids=arguments.eos, size=arguments.logits)


def read_or_bytes(arguments: argparse.Namespace, says_bytes: bool) -> Vocab:
    """The vocabulary that ``--vocab`` names, else a token for each byte; `says_bytes` says so on standard error."""
    if arguments.vocab is not None:
        return read(arguments)
    if says_bytes:
        terminal.say_error("wfsa: no --vocab is given, so every byte is a token")
    return byte_vocab()


def leave_copy(arguments: argparse.Namespace, vocab: Vocab, artifact: Path) -> None:
    """Beside ``artifact``, unless there is one or ``--no-vocab-copy`` is given."""
    copy = artifact.parent / f"{vocab.fingerprint[:16]}.vocab"
    if not arguments.no_vocab_copy and not copy.exists():
        vocab.save(copy)
