"""Saving and loading a constraint: one safetensors file, no code in it.

    tensors    the engine's tables (ext/artifact/write.hpp), each in the narrowest integer type that holds it
    metadata   one key, "wfsa": JSON with format, version, vocabulary fingerprint, names, stats, report, schema
               and checksum

Same constraint, same bytes: tensors are written by name and the metadata is one string with sorted keys.
Loading checks format, version, checksum and vocabulary, then every index in every table, before anything is used.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from wfsa._ext.constraint import ConstraintCore
from wfsa.constraint import Constraint
from wfsa.errors import ArtifactError, WfsaError
from wfsa.grammar.json_schema import ReportEntry, SchemaReport
from wfsa.grammar.json_schema.sources import from_text, to_text
from wfsa.storage.array_file import format_of
from wfsa.storage.text_file import FORMAT as STRINGS
from wfsa.texts.constraint import StringConstraint
from wfsa.vocab import Vocab, require_vocab

FORMAT: Final = "wfsa-constraint"
VERSION: Final = 4
_TYPES: Final = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)


def save(constraint: Constraint, path: str | os.PathLike[str]) -> None:
    """Write `constraint` to `path`; replaces an existing file in one step."""
    data = to_bytes(constraint)
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        scratch.write_bytes(data)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def to_bytes(constraint: Constraint) -> bytes:
    """The artifact's bytes."""
    tensors = {name: _narrow(array) for name, array in sorted(constraint._core.to_arrays().items())}
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "vocabulary": constraint.vocab.fingerprint,
        "terminal_names": list(constraint.terminal_names),
        "terminal_origins": list(constraint.terminal_origins),
        "stats": {k: v for k, v in constraint.stats.items() if k not in ("seconds", "stages")},
        "report": constraint.report_entries(),
        "schema": None if constraint.source is None else to_text(constraint.source),
    }
    head["checksum"] = _checksum(head, tensors)
    return save_tensors(tensors, {"wfsa": json.dumps(head, sort_keys=True, ensure_ascii=False)})


def load(path: str | os.PathLike[str], vocab: Vocab) -> Constraint:
    """Read a constraint compiled for `vocab`: what :meth:`Constraint.save` wrote, a closed set of texts among others.

    Raises ArtifactError on a file that is damaged, foreign, of another version, or compiled for another vocabulary;
    OSError when it cannot be read.
    """
    require_vocab(vocab)
    if format_of(Path(path)) == STRINGS:
        return StringConstraint.load(path, vocab)
    return from_bytes(Path(path).read_bytes(), vocab, str(path))


def from_bytes(data: bytes, vocab: Vocab, where: str = "the data") -> Constraint:
    """The inverse of :func:`to_bytes`."""
    head = _head(data, where)
    if head.get("format") == STRINGS:
        raise ArtifactError(f"{where} is a closed set of texts; give wfsa.load its path")
    if head.get("format") != FORMAT:
        raise ArtifactError(f"{where} is not a wfsa constraint (format {head.get('format')!r})")
    if head.get("version") != VERSION:
        version = head.get("version")
        raise ArtifactError(f"{where} has format version {version!r}, this wfsa reads {VERSION}; compile it again")
    if head.get("vocabulary") != vocab.fingerprint:
        raise ArtifactError(
            f"{where} was compiled for another vocabulary ({str(head.get('vocabulary'))[:12]}…, this one is "
            f"{vocab.fingerprint[:12]}…); load it with that vocabulary or compile it again"
        )
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as e:
        raise ArtifactError(f"{where} is damaged: {e}") from None
    if _checksum({k: v for k, v in head.items() if k != "checksum"}, tensors) != head.get("checksum"):
        raise ArtifactError(f"{where} is damaged: its contents do not match their checksum")
    names, origins = _strings(head, "terminal_names", where), _strings(head, "terminal_origins", where)
    for name, array in tensors.items():
        if array.ndim != 1 or array.dtype not in _TYPES:
            raise ArtifactError(f"{where} is damaged: array {name!r} has shape {array.shape} and type {array.dtype}")
        if array.dtype == np.uint32 and array.size and int(array.max()) > 0x7FFFFFFF:
            raise ArtifactError(f"{where} is damaged: array {name!r} is out of range")
    try:
        core = ConstraintCore.from_arrays(vocab.core, tensors)
    except ArtifactError as e:
        raise ArtifactError(f"{where} is damaged: {e}") from None
    if not len(names) == len(origins) == int(tensors["head"][0]) - 1:  # the last terminal is the end of the text
        raise ArtifactError(f"{where} is damaged: it has {len(names)} names and {len(origins)} origins of terminals")
    stats = head.get("stats")
    schema = head.get("schema")
    try:
        source = None if schema is None else from_text(schema)
    except (WfsaError, ValueError, TypeError, RecursionError):
        raise ArtifactError(f"{where} is damaged: bad schema") from None
    return Constraint(
        core, vocab, names, origins, stats if isinstance(stats, dict) else {}, _report(head.get("report"), where),
        source,
    )  # fmt: skip


def _head(data: bytes, where: str) -> dict[str, Any]:
    if len(data) < 8:
        raise ArtifactError(f"{where} is too short to be a wfsa artifact ({len(data)} bytes)")
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= len(data) - 8:
        raise ArtifactError(f"{where} is not a wfsa artifact, or it is cut short")
    try:
        header = json.loads(data[8 : 8 + length])
        head = json.loads(header["__metadata__"]["wfsa"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ArtifactError(f"{where} is not a wfsa artifact, or its header is damaged") from None
    if not isinstance(head, dict):
        raise ArtifactError(f"{where} is damaged: bad header")
    return head


def _strings(head: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = head.get(name)
    if not (isinstance(value, list) and all(isinstance(x, str) for x in value)):
        raise ArtifactError(f"{where} is damaged: bad {name}")
    return tuple(value)


def _report(entries: Any, where: str) -> SchemaReport | None:
    if entries is None:
        return None
    try:
        return SchemaReport(tuple(ReportEntry(*entry) for entry in entries))
    except TypeError:
        raise ArtifactError(f"{where} is damaged: bad report") from None


def _narrow(array: np.ndarray[Any, np.dtype[np.int32]]) -> np.ndarray[Any, Any]:
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for kind in _TYPES:
        info = np.iinfo(kind)
        if info.min <= low and high <= info.max:
            return array.astype(kind)
    raise AssertionError("int32 holds every int32")


def _checksum(head: dict[str, Any], tensors: dict[str, np.ndarray[Any, Any]]) -> str:
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
