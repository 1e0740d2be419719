"""A file of arrays and a JSON head: safetensors, no code in it; written by blocks, mapped when read.

    8 bytes   length of the header, little-endian; the header is filled up with blanks to a multiple of 8
    header    JSON: the arrays' types, shapes and places, and under __metadata__ the head as one string of JSON
    data      the arrays, those of the widest type first, so that each lies at a multiple of its type's size

The head has ``format``, ``version`` and ``checksums``, a CRC-32 of each array. Same head and arrays, same bytes.
What the arrays mean, and whether their values fit together, is for the module that knows the format to say.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa.errors import ArtifactError

Arrays = dict[str, npt.NDArray[Any]]

_DTYPES: Final = {"U8": np.uint8, "U16": np.uint16, "I32": np.int32, "I64": np.int64}
_NAMES: Final = {np.dtype(kind): name for name, kind in _DTYPES.items()}
_BLOCK: Final = 1 << 24


def write(path: str | os.PathLike[str], head: dict[str, Any], arrays: Arrays) -> None:
    """Write arrays of uint8, uint16, int32 or int64 by blocks; replaces an existing file in one step."""
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    head = {**head, "checksums": {name: _checksum(arrays[name]) for name in names}}
    header: dict[str, Any] = {"__metadata__": {"wfsa": json.dumps(head, sort_keys=True)}}
    at = 0
    for name in names:
        array = arrays[name]
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with scratch.open("wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                for block in _blocks(arrays[name]):
                    out.write(block)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def read(path: Path, kind: str, format_name: str, version: int) -> tuple[dict[str, Any], Arrays]:
    """The head, and the arrays mapped: types, shapes and places are checked, nothing is read yet.

    ``kind`` is what messages call the file. ArtifactError on a file of another format or version, damaged or cut short.
    """
    where = str(path)
    head, table, base = _header(path, kind)
    if head.get("format") != format_name:
        raise ArtifactError(f"{where} is not {kind} (format {head.get('format')!r})")
    if head.get("version") != version:
        raise ArtifactError(
            f"{where} has format version {head.get('version')!r}, this wfsa reads {version}; build it again"
        )
    return head, _map(path, table, base)


def verify(path: Path, head: dict[str, Any], arrays: Arrays) -> None:
    """Read every array; ArtifactError where one does not match its checksum."""
    sums = head.get("checksums")
    for name, array in arrays.items():
        if not isinstance(sums, dict) or sums.get(name) != _checksum(array):
            raise ArtifactError(f"{path} is damaged: {name} does not match its checksum")


def format_of(path: Path) -> str | None:
    """The format that the head names; None where there is no head to read."""
    try:
        found = _header(path, "a file of wfsa")[0].get("format")
    except ArtifactError:
        return None
    return found if isinstance(found, str) else None


def _header(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any], int]:
    where = str(path)
    with path.open("rb") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 16 or not 2 <= length <= size - 8:
            raise ArtifactError(f"{where} is not {kind}, or it is cut short ({size} bytes)")
        text = file.read(length)
    try:
        table = json.loads(text)
        head = json.loads(table.pop("__metadata__")["wfsa"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ArtifactError(f"{where} is not {kind}, or its header is damaged") from None
    if not isinstance(head, dict) or not isinstance(table, dict):
        raise ArtifactError(f"{where} is damaged: bad header")
    return head, table, 8 + length


def _map(path: Path, table: dict[str, Any], base: int) -> Arrays:
    where = str(path)
    size = path.stat().st_size - base
    arrays: Arrays = {}
    data = np.memmap(path, np.uint8, "r", base) if size else np.zeros(0, np.uint8)
    end = 0
    for name, entry in table.items():
        try:
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(int(x) for x in entry["shape"])
            begin, stop = (int(x) for x in entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            raise ArtifactError(f"{where} is damaged: bad entry for array {name!r}") from None
        count = 1
        for extent in shape:
            count *= extent
        if min((0, *shape)) < 0 or len(shape) > 2 or stop - begin != count * dtype.itemsize or begin % dtype.itemsize:
            raise ArtifactError(f"{where} is damaged: array {name!r} does not fit its place")
        if not 0 <= begin <= stop <= size:
            raise ArtifactError(f"{where} is cut short: array {name!r} ends at byte {base + stop} of {base + size}")
        end = max(end, stop)
        arrays[name] = np.asarray(data[begin:stop]).view(dtype).reshape(shape)
    if end != size:
        raise ArtifactError(f"{where} is damaged: {size - end} bytes belong to no array")
    return arrays


def _blocks(array: npt.NDArray[Any]) -> Iterator[memoryview]:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for begin in range(0, len(flat), _BLOCK):
        yield flat[begin : begin + _BLOCK].data


def _checksum(array: npt.NDArray[Any]) -> int:
    value = 0
    for block in _blocks(array):
        value = zlib.crc32(block, value)
    return value
