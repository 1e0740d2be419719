"""Vocabularies from Hugging Face's ``tokenizer.json``.

What the tokens mean is read off the decoder, which is the part that turns tokens into text: a ``ByteLevel`` decoder is
the byte-level spelling (``spellings``), ``Replace("▁", " ")`` or ``Metaspace`` with or without ``ByteFallback``
SentencePiece's. Anything else (``WordPiece`` drops spaces it cannot restore) is a :class:`VocabError`: a guess here
would be a wrong mask later.

Added tokens that are not marked special (``<think>``) are text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wfsa.errors import VocabError
from wfsa.vocab.raw import RawVocab, declared
from wfsa.vocab.spellings import byte_level_token, sentencepiece_token


def _components(part: Mapping[str, Any] | None, list_name: str) -> list[Mapping[str, Any]]:
    """A decoder or pre-tokenizer as a flat list; ``Sequence`` nests."""
    if part is None:
        return []
    if part.get("type") == "Sequence":
        return [leaf for inner in part.get(list_name, []) for leaf in _components(inner, list_name)]
    return [part]


def from_tokenizer_json(description: Mapping[str, Any], eos_ids: Iterable[int | None] = ()) -> RawVocab:
    """A ``tokenizer.json``, or ``Tokenizer.to_str()``; it names no end token, so ``eos_ids`` are from beside it."""
    try:
        model: Mapping[str, Any] = description["model"]
        listed: Any = model["vocab"]
    except (KeyError, TypeError) as error:
        raise VocabError("this JSON is not a tokenizer.json: it has no model.vocab") from error
    decoders = _components(description.get("decoder"), "decoders")
    kinds = {str(part.get("type")) for part in decoders}
    pre_kinds = {str(part.get("type")) for part in _components(description.get("pre_tokenizer"), "pretokenizers")}
    spaces = any(
        p.get("type") == "Replace" and p.get("pattern", {}).get("String") == "▁" and p.get("content") == " "
        for p in decoders
    )
    if "ByteLevel" in kinds or (not kinds and "ByteLevel" in pre_kinds):
        byte_level, byte_fallback = True, False
    elif spaces or "Metaspace" in kinds or "ByteFallback" in kinds:
        byte_level, byte_fallback = False, "ByteFallback" in kinds or bool(model.get("byte_fallback"))
    else:
        raise VocabError(
            f"cannot tell which bytes this tokenizer's tokens stand for: model {model.get('type')!r} with decoder "
            f"{sorted(kinds) or None}; byte-level and SentencePiece-like decoders are known. "
            "Build wfsa.Vocab(tokens) by hand"
        )
    for part in decoders:
        if part.get("type") == "Metaspace" and part.get("replacement", "▁") != "▁":
            raise VocabError(
                f"a Metaspace decoder that writes the space as {part.get('replacement')!r} is not supported"
            )

    if isinstance(listed, Mapping):  # BPE and WordLevel: {piece: id}
        pairs: Iterable[tuple[str, int]] = listed.items()
        n_model = max(listed.values(), default=-1) + 1
    else:  # Unigram: [[piece, score], …]
        pairs = [(str(entry[0]), i) for i, entry in enumerate(listed)]
        n_model = len(listed)
    added: Sequence[Mapping[str, Any]] = description.get("added_tokens") or []
    tokens: list[bytes | None] = [None] * max([n_model, *(int(entry["id"]) + 1 for entry in added)])
    if byte_level:
        for piece, token_id in pairs:
            tokens[token_id] = byte_level_token(piece)
    else:
        for piece, token_id in pairs:
            tokens[token_id] = sentencepiece_token(piece, byte_fallback)
    names: dict[str, int] = {}
    for entry in added:
        content, token_id = str(entry["content"]), int(entry["id"])
        if entry.get("special"):
            names[content] = token_id
            tokens[token_id] = content.encode()
        else:
            tokens[token_id] = content.encode() if byte_level else sentencepiece_token(content, byte_fallback)
    unknown = model.get("unk_token")
    if isinstance(listed, Mapping) and unknown in listed:
        names.setdefault(str(unknown), int(listed[unknown]))
    if not isinstance(listed, Mapping) and isinstance(model.get("unk_id"), int):
        names.setdefault(str(listed[model["unk_id"]][0]), int(model["unk_id"]))
    padding = description.get("padding") or {}
    return RawVocab(tokens, sorted(names.values()), declared(eos_ids), names, declared([padding.get("pad_id")]))


def from_tokenizer_json_file(path: str | os.PathLike[str]) -> RawVocab:
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
    except (ValueError, RecursionError) as error:
        raise VocabError(f"{os.fspath(path)}: not a tokenizer.json: {error}") from error
    return from_tokenizer_json(description)
