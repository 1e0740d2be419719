"""Where vocabularies come from: tokenizer objects and files, read into (bytes by id, special ids, eos ids).

**Problem.** A tokenizer stores its tokens in a spelling of its own. The engine needs the bytes that a token *adds to
the text*. Two spellings cover nearly every model:

- *Byte-level BPE* (GPT-2, Llama 3, Qwen, DeepSeek): each byte is written as one printable character, so that a token
  that is not UTF-8 is still a string. The map is a fixed permutation (:data:`BYTE_OF_CHARACTER`); ``Ġ`` is the space.
- *SentencePiece* (Llama 2, Gemma, Mistral): text as it is, the space written ``▁`` (U+2581), and ``<0xNN>`` pieces for
  the bytes that no piece covers.

**Method.** One function for each source, told apart by the module that a tokenizer's class comes from, so that no
optional package is imported to be asked. What a Hugging Face tokenizer means is read off its decoder, which is the
part that turns tokens into text: a ``ByteLevel`` decoder is the first spelling, ``Replace("▁", " ")`` or
``Metaspace`` with or without ``ByteFallback`` the second. Anything else (``WordPiece`` drops spaces it cannot
restore) is a :class:`VocabError`: a guess here would be a wrong mask later.

**Special ids** are the tokens that are never text: control tokens, unknown, unused. Added tokens that are not marked
special (``<think>``) are text. **End ids** are what the source declares, and the special tokens whose names are known
to end a turn (:data:`END_NAMES`), since a declared end token is often only one of two or three.

**Not done.** A leading space that a decoder strips from the very start of a text is kept: a constrained text
continues a prompt, and there nothing is stripped.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from wfsa.errors import ArtifactError, VocabError
from wfsa.vocab.gguf_metadata import Value, read_metadata

END_NAMES: Final = frozenset(
    {
        "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<end_of_turn>", "</s>", "<eos>",
        "<|end|>", "<|return|>", "<｜end▁of▁sentence｜>", "<EOT>", "<|EOT|>", "<|END_OF_TURN_TOKEN|>", "<turn|>",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RawVocab:
    """What a source says: ``tokens[id]`` (``None`` or ``b""`` for an id without text) and the ids that are not text."""

    tokens: list[bytes | None]
    special_ids: list[int]
    eos_ids: list[int]
    special_names: dict[str, int] = field(default_factory=dict)


def _byte_alphabet() -> dict[int, int]:
    """GPT-2's permutation: printable Latin-1 stands for itself, the other 68 bytes for U+0100 and up, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {0x100 + i: byte for i, byte in enumerate(others)}


BYTE_OF_CHARACTER: Final = _byte_alphabet()
_CHARACTER_OF_BYTE: Final = {byte: chr(character) for character, byte in BYTE_OF_CHARACTER.items()}
# For str.translate: an alphabet character becomes the Latin-1 character of its byte. The Latin-1 characters outside the
# alphabet become one that Latin-1 cannot encode, so that such a token is seen and taken as plain text.
_TO_LATIN1: Final = {c: 0x100 for c in range(256) if c not in BYTE_OF_CHARACTER} | BYTE_OF_CHARACTER
_BYTE_PIECE: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_level_token(spelling: str) -> bytes:
    """The bytes of a token written in GPT-2's byte alphabet (plain UTF-8 if it is not in that alphabet)."""
    try:
        return spelling.translate(_TO_LATIN1).encode("latin-1")
    except UnicodeEncodeError:
        return spelling.encode("utf-8", "surrogatepass")


def byte_level_spelling(text: bytes) -> str:
    """The inverse of :func:`byte_level_token`."""
    return "".join(map(_CHARACTER_OF_BYTE.__getitem__, text))


def sentencepiece_token(piece: str, byte_fallback: bool = True) -> bytes:
    """The bytes of a SentencePiece piece: ``▁`` is a space, ``<0xNN>`` (with byte fallback) one byte."""
    if byte_fallback and len(piece) == 6 and (match := _BYTE_PIECE.fullmatch(piece)):
        return bytes([int(match.group(1), 16)])
    return piece.replace("▁", " ").encode("utf-8", "surrogatepass")


def _ends(names: Mapping[str, int], declared: Iterable[int | None]) -> list[int]:
    return sorted(
        {i for i in declared if i is not None and i >= 0} | {i for name, i in names.items() if name in END_NAMES}
    )


# --- Hugging Face ------------------------------------------------------------------------------------------------


def _components(part: Mapping[str, Any] | None, list_name: str) -> list[Mapping[str, Any]]:
    """A decoder or pre-tokenizer as a flat list; ``Sequence`` nests."""
    if part is None:
        return []
    if part.get("type") == "Sequence":
        return [leaf for inner in part.get(list_name, []) for leaf in _components(inner, list_name)]
    return [part]


def from_tokenizer_json(description: Mapping[str, Any], declared_eos: Iterable[int | None] = ()) -> RawVocab:
    """A `tokenizers` JSON (``tokenizer.json``, or ``Tokenizer.to_str()``)."""
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
    return RawVocab(tokens, sorted(names.values()), _ends(names, declared_eos), names)


def _from_tokenizers(tokenizer: Any, declared_eos: Iterable[int | None] = ()) -> RawVocab:
    return from_tokenizer_json(json.loads(tokenizer.to_str()), declared_eos)


def _from_transformers(tokenizer: Any) -> RawVocab:
    declared = getattr(tokenizer, "eos_token_id", None)
    eos = list(declared) if isinstance(declared, (list, tuple)) else [declared]
    backend = getattr(tokenizer, "backend_tokenizer", None) or getattr(tokenizer, "_tokenizer", None)
    if backend is not None and hasattr(backend, "to_str"):
        return _from_tokenizers(backend, eos)
    processor = getattr(tokenizer, "sp_model", None)
    if processor is not None:
        raw = _from_sentencepiece(processor)
        return RawVocab(raw.tokens, raw.special_ids, _ends(raw.special_names, [*raw.eos_ids, *eos]), raw.special_names)
    inner = getattr(tokenizer, "tokenizer", None)
    if inner is not None and _family(inner) == "mistral_common":
        return _from_mistral_common(inner)
    raise VocabError(
        f"{type(tokenizer).__name__} is a slow tokenizer whose tokens' bytes cannot be read; load the fast one "
        "(AutoTokenizer.from_pretrained(..., use_fast=True)), or build wfsa.Vocab(tokens) by hand"
    )


# --- tiktoken, SentencePiece, mistral-common ---------------------------------------------------------------------


def _from_tiktoken(encoding: Any) -> RawVocab:
    ranks: Mapping[bytes, int] = encoding._mergeable_ranks
    names: dict[str, int] = dict(encoding._special_tokens)
    tokens: list[bytes | None] = [None] * (max([*ranks.values(), *names.values()], default=-1) + 1)
    for token, token_id in ranks.items():
        tokens[token_id] = token
    for name, token_id in names.items():
        tokens[token_id] = name.encode()
    return RawVocab(tokens, sorted(names.values()), _ends(names, ()), names)


def _from_sentencepiece(processor: Any) -> RawVocab:
    size = int(processor.get_piece_size())
    pieces: list[str] = processor.id_to_piece(list(range(size)))
    names: dict[str, int] = {}
    tokens: list[bytes | None] = []
    for token_id, piece in enumerate(pieces):
        if processor.is_control(token_id) or processor.is_unknown(token_id) or processor.is_unused(token_id):
            names[piece] = token_id
            tokens.append(piece.encode())
        else:
            tokens.append(sentencepiece_token(piece, bool(processor.is_byte(token_id))))
    return RawVocab(tokens, sorted(names.values()), _ends(names, [int(processor.eos_id())]), names)


def _from_mistral_common(tokenizer: Any) -> RawVocab:
    # MistralTokenizer → instruct_tokenizer → Tekkenizer or SentencePieceTokenizer.
    inner = getattr(tokenizer, "instruct_tokenizer", tokenizer)
    inner = getattr(inner, "tokenizer", inner)
    model = getattr(inner, "_model", None)
    if model is not None and _family(model) == "sentencepiece":
        return _from_sentencepiece(model)
    if model is None or _family(model) != "tiktoken" or not hasattr(inner, "num_special_tokens"):
        raise VocabError(f"{type(tokenizer).__name__}: not a mistral-common tokenizer that wfsa knows")
    # Tekken: special tokens first, then the ranks, cut at the size that the model has.
    first, size = int(inner.num_special_tokens), int(inner.n_words)
    tokens: list[bytes | None] = [None] * size
    names: dict[str, int] = {}
    for token_id in range(first):
        name = str(inner.id_to_piece(token_id))
        names.setdefault(name, token_id)
        tokens[token_id] = name.encode()
    for token, rank in model._mergeable_ranks.items():
        if first + rank < size:
            tokens[first + rank] = token
    return RawVocab(tokens, list(range(first)), _ends(names, [int(inner.eos_id)]), names)


def _family(tokenizer: Any) -> str | None:
    """The package that the object's class, or a base of it, comes from."""
    for base in type(tokenizer).__mro__:
        package = base.__module__.partition(".")[0]
        if package in _READERS:
            return package
    return None


_READERS: Final = {
    "transformers": _from_transformers,
    "tokenizers": _from_tokenizers,
    "tiktoken": _from_tiktoken,
    "sentencepiece": _from_sentencepiece,
    "mistral_common": _from_mistral_common,
}


def from_tokenizer(tokenizer: Any) -> RawVocab:
    """Dispatch on the package that the tokenizer's class comes from."""
    family = _family(tokenizer)
    if family is None:
        raise VocabError(
            f"no vocabulary can be read from {type(tokenizer).__module__}.{type(tokenizer).__qualname__}; known are "
            "transformers and tokenizers (fast), tiktoken, sentencepiece and mistral-common tokenizers"
        )
    return _READERS[family](tokenizer)


# --- files -------------------------------------------------------------------------------------------------------

_NORMAL, _UNKNOWN, _CONTROL, _UNUSED, _BYTE = 1, 2, 3, 5, 6


def from_gguf_metadata(metadata: Mapping[str, Value], name: str) -> RawVocab:
    model, spellings = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.tokens")
    if not isinstance(model, bytes) or not isinstance(spellings, list):
        raise VocabError(f"{name}: this GGUF file carries no tokenizer")
    if model not in (b"gpt2", b"llama", b"t5"):
        raise VocabError(
            f"{name}: tokenizer model {model.decode('utf-8', 'replace')!r} is not supported; gpt2, llama and t5 are"
        )
    listed = metadata.get("tokenizer.ggml.token_type")
    types = listed if isinstance(listed, list) else [_NORMAL] * len(spellings)
    if len(types) != len(spellings):
        raise VocabError(f"{name}: {len(types)} token types for {len(spellings)} tokens")
    names: dict[str, int] = {}
    special: list[int] = []
    tokens: list[bytes | None] = []
    for token_id, (spelling, kind) in enumerate(zip(spellings, types, strict=True)):
        if not isinstance(spelling, bytes):
            raise VocabError(f"{name}: token {token_id} is not a string")
        text = spelling.decode("utf-8", "surrogateescape")
        if kind in (_UNKNOWN, _CONTROL, _UNUSED):
            special.append(token_id)
            names.setdefault(text, token_id)
            tokens.append(spelling)
        elif model == b"gpt2":
            # Added text (4, user-defined) is literal, the rest is in the byte alphabet.
            tokens.append(byte_level_token(text) if kind == _NORMAL else spelling)
        else:
            tokens.append(sentencepiece_token(text, kind == _BYTE))
    declared = [metadata.get(f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot", "eom")]
    return RawVocab(tokens, special, _ends(names, [int(i) for i in declared if isinstance(i, int)]), names)


def from_gguf(path: str | os.PathLike[str]) -> RawVocab:
    return from_gguf_metadata(read_metadata(path), os.fspath(path))


def from_tiktoken_file(path: str | os.PathLike[str]) -> RawVocab:
    """``.tiktoken`` rank files: ``base64 rank`` a line. They name no special tokens, so there is no end token."""
    tokens: dict[int, bytes] = {}
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.strip():
                    encoded, rank = line.split()
                    tokens[int(rank)] = base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise VocabError(f"{os.fspath(path)}: not a tiktoken rank file: {error}") from error
    if not tokens or min(tokens) < 0 or max(tokens) > 4 * len(tokens) + 1024:
        raise VocabError(
            f"{os.fspath(path)}: not a tiktoken rank file: {len(tokens)} ranks up to {max(tokens, default=-1)}"
        )
    return RawVocab([tokens.get(i) for i in range(max(tokens) + 1)], [], [])


def from_tokenizer_json_file(path: str | os.PathLike[str]) -> RawVocab:
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
    except ValueError as error:
        raise VocabError(f"{os.fspath(path)}: not a tokenizer.json: {error}") from error
    return from_tokenizer_json(description)


@dataclass(frozen=True, slots=True)
class PackedVocab:
    """A vocabulary that is stored as arrays already."""

    blob: np.ndarray[Any, np.dtype[np.uint8]]
    offsets: np.ndarray[Any, np.dtype[np.int64]]
    special_ids: np.ndarray[Any, np.dtype[np.int32]]
    eos_ids: list[int]
    special_names: dict[str, int]


def from_npz(path: str | os.PathLike[str]) -> PackedVocab:
    """``offsets`` int[n+1], ``bytes`` uint8, ``special`` int32, ``meta`` (UTF-8 JSON with ``eos_ids``)."""
    name = os.fspath(path)
    try:
        with np.load(name, allow_pickle=False) as arrays:
            missing = {"offsets", "bytes", "meta"} - set(arrays.files)
            if missing:
                raise VocabError(f"{name}: not a vocabulary: the .npz has no array {sorted(missing)[0]!r}")
            blob, offsets = arrays["bytes"], arrays["offsets"]
            special = arrays["special"] if "special" in arrays.files else np.empty(0, np.int32)
            meta = json.loads(arrays["meta"].tobytes())
    except VocabError:
        raise
    except FileNotFoundError:
        raise
    except Exception as error:  # zipfile, lzma, zlib, json and numpy each have their own
        raise ArtifactError(f"{name}: not a readable .npz vocabulary: {error}") from error
    if (
        not isinstance(meta, dict)
        or blob.dtype != np.uint8
        or any(a.dtype.kind not in "iu" or a.ndim != 1 for a in (offsets, special, blob))
    ):
        raise ArtifactError(f"{name}: the .npz arrays have the wrong types for a vocabulary")
    eos = [int(i) for i in meta.get("eos_ids") or []]
    named = meta.get("special_tokens")
    names = {str(key): int(value) for key, value in named.items()} if isinstance(named, dict) else {}
    return PackedVocab(blob, offsets.astype(np.int64), special.astype(np.int32), eos, names)
