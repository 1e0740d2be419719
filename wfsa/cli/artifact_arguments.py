"""The artifact on the command line, and the vocabulary that it was compiled for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wfsa.cli import vocab_arguments
from wfsa.errors import ArtifactError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The artifact, and where its vocabulary is if it does not lie beside it. Options and what follows come after."""
    parser.add_argument("artifact", type=Path, help="what wfsa compile wrote")
    vocab_arguments.add_arguments(parser, required=False)


def load(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """The constraint and its vocabulary: that of ``--vocab``, else the copy beside the artifact that fits."""
    import wfsa

    artifact: Path = arguments.artifact
    if arguments.vocab is not None:
        vocab = vocab_arguments.read(arguments)
        return wfsa.load(artifact, vocab), vocab
    with open(artifact, "rb"):  # a missing artifact is told as such
        pass
    refusal: ArtifactError | None = None
    for copy in sorted(artifact.parent.glob("*.vocab")):
        vocab = wfsa.Vocab.load(copy)
        try:
            return wfsa.load(artifact, vocab), vocab
        except ArtifactError as error:
            refusal = error
    raise refusal or ArtifactError(f"{artifact}: no vocabulary lies beside it; pass --vocab")
