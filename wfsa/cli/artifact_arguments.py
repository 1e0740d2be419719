"""The constraint on the command line: an artifact with the vocabulary that it was compiled for, or a source."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wfsa.cli import option_settings, vocab_arguments
from wfsa.cli import sources as source_files
from wfsa.errors import ArtifactError, WfsaError


def add_arguments(parser: argparse.ArgumentParser, *, sources: bool = True) -> None:
    """The artifact and its vocabulary; a schema or grammar in its place where `sources` are taken."""
    if not sources:
        parser.add_argument("artifact", type=Path, help="what wfsa compile wrote")
        vocab_arguments.add_arguments(parser, "the copy that compile left beside the artifact")
        return
    parser.add_argument(
        "artifact",
        type=Path,
        metavar="ARTIFACT_OR_SCHEMA",
        help="what wfsa compile wrote; or a schema or grammar by its suffix (.json, .lark, .gbnf, .regex), "
        "compiled for this call",
    )
    vocab_arguments.add_arguments(
        parser, "the copy that compile left beside the artifact; of a schema or grammar, single bytes"
    )
    option_settings.add_arguments(parser, "wfsa.CompileOptions or wfsa.SchemaOptions, for a schema or grammar")
    parser.add_argument("--lenient", action="store_true", help="ignore what of a JSON Schema cannot be enforced")


def load(arguments: argparse.Namespace, *, says_bytes: bool = False) -> tuple[Any, Any]:
    """The constraint and its vocabulary.

    An artifact's vocabulary is that of ``--vocab``, else the copy beside the artifact that fits. A source without
    ``--vocab`` is compiled for single bytes, which `says_bytes` says on standard error, since what the command shows
    depends on the vocabulary.
    """
    artifact: Path = arguments.artifact
    if arguments.vocab is None and (arguments.eos or arguments.logits):
        raise WfsaError("--eos and --logits go with --vocab")
    kind = source_files.kind_of(artifact)
    if kind is not None:
        return _compiled(arguments, kind, says_bytes)
    if getattr(arguments, "set", None) or getattr(arguments, "lenient", False):
        raise WfsaError(f"{artifact}: --set and --lenient are for a schema or grammar; an artifact is compiled already")
    try:
        return _loaded(arguments, artifact)
    except ArtifactError as error:
        if artifact.suffix == ".wfsa" or not hasattr(arguments, "lenient"):
            raise
        known = ", ".join(source_files.KIND_OF_SUFFIX)
        raise ArtifactError(f"{error}; a schema or grammar ends in {known}") from None


def _loaded(arguments: argparse.Namespace, artifact: Path) -> tuple[Any, Any]:
    import wfsa

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


def _compiled(arguments: argparse.Namespace, kind: str, says_bytes: bool) -> tuple[Any, Any]:
    source: Path = arguments.artifact
    if not hasattr(arguments, "lenient"):
        raise WfsaError(
            f"{source}: a schema or grammar, where an artifact is wanted; wfsa compile makes one, "
            "and wfsa report shows what of a schema is enforced"
        )
    text = source_files.read_source(source, kind)
    vocab = vocab_arguments.read_or_bytes(arguments, says_bytes)
    return source_files.compile_source(kind, text, vocab, arguments.set, lenient=arguments.lenient, mode="lazy"), vocab
