"""A closed set of texts as a constraint: names, titles, labels, up to many millions.

    constraint = wfsa.compile_items(names, vocab)         # like any Constraint: start, get_mask, commit
    state = constraint.start()
    ...
    state.item()                                          # which name has been written
    constraint.save("names.wfsa")                         # wfsa.load("names.wfsa", vocab) is many times faster

The language is the set itself, byte for byte, and every way of cutting a text into tokens is allowed, as everywhere in
wfsa; the mask at a prefix is exactly the set of tokens that keep it a prefix of some text. A grammar with one terminal
per text gives the same masks up to some ten thousand texts; here nothing is compiled but a sort, and a mask is one
walk over the sorted texts and the vocabulary's trie together (ext/texts/texts.hpp).

Memory: the bytes of the texts, 16 bytes a text, and the lists of hubs. Time and numbers: docs/texts.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa._ext.texts import StringsCore, StringState
from wfsa.constraint import Constraint
from wfsa.errors import ItemError
from wfsa.storage import text_file as string_storage
from wfsa.vocab import Vocab, require_vocab

HUB: Final = 4096
HUB_TOKENS: Final = 1 << 26


class StringConstraint(Constraint):
    """A :class:`wfsa.Constraint` over a closed set of texts; made by :func:`compile_items`.

    ``start()`` gives a state with the methods of :class:`wfsa.State`, and two more: ``item()``, the input position of
    the text that is complete (the first one's, where the input has it twice; -1: none), and ``n_strings``, how many
    texts begin with what is written. ``stats`` counts different texts, texts given, bytes, hubs and
    the tokens listed for them.
    """

    __slots__ = ()

    _core: Any

    def start(self) -> StringState:  # type: ignore[override]
        """A state before the first token."""
        state = self._core.start()
        state.constraint = self
        return state  # type: ignore[no-any-return]

    def __len__(self) -> int:
        """Different texts."""
        return int(self.stats["strings"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file that :meth:`load` and :func:`wfsa.load` read; replaces an existing file.

        It holds the sorted texts: their bytes, 1 to 8 bytes a text for its length and 4 or 8 for its input position.
        """
        string_storage.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], vocab: Vocab) -> StringConstraint:
        """Read a set that was saved for ``vocab``, without sorting it.

        Raises ArtifactError on a file that is damaged, cut short, foreign, of another version or for another
        vocabulary; OSError when it cannot be read.
        """
        began = time.perf_counter()
        return _constraint(string_storage.read(path, vocab, HUB_TOKENS), vocab, began)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (*self._core.arrays(), self._core.hub, self._core.counts()["given"], self.vocab)

    def memory(self) -> dict[str, int]:
        """Bytes by part, and their ``total``; without the trie of the vocabulary, which every set has for itself."""
        counts = self._core.counts()
        parts = {
            "texts": counts["bytes"] + 16 * counts["strings"],
            "hubs": 56 * counts["hubs"] + 4 * counts["hub_tokens"],
        }
        return {**parts, "total": sum(parts.values())}

    def stack_depth(self) -> int | None:
        """1: a state is an interval of the sorted texts."""
        return 1


def compile_items(
    strings: Iterable[str | bytes] | tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]],
    vocab: Vocab,
    *,
    hub: int = HUB,
) -> StringConstraint:
    """A constraint that takes exactly the given texts, in every tokenisation.

    strings   str (UTF-8) or bytes, in any order, duplicates are fine; or ``(blob, offsets)``: uint8[total] and
              int64[n + 1]
    hub       places with at least so many texts have their tokens listed beforehand; more memory and time to build,
              less time for the slowest masks

    Raises ItemError on an empty set, an empty text, or anything that is no text.
    """
    began = time.perf_counter()
    require_vocab(vocab)
    if hub < 2:
        raise ItemError(f"hub={hub}; it is at least 2")
    blob, offsets = _arrays(strings)
    if len(offsets) < 2:
        raise ItemError("an empty set of texts: nothing could ever be written")
    lengths = np.diff(offsets)
    if not lengths.all():
        raise ItemError(f"text {int(np.flatnonzero(lengths == 0)[0])} is empty")
    core = StringsCore(
        blob, offsets, vocab.blob, vocab.offsets, vocab.special_ids, vocab.eos_ids, vocab.size, hub, HUB_TOKENS
    )
    return _constraint(core, vocab, began)


def _constraint(core: StringsCore, vocab: Vocab, began: float) -> StringConstraint:
    stats = {**core.counts(), "seconds": time.perf_counter() - began}
    return StringConstraint(core, vocab, ("ITEM",), (f"{stats['strings']} texts",), stats)  # type: ignore[arg-type]


def _unpickled(
    blob: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    hub: int,
    given: int,
    vocab: Vocab,
) -> StringConstraint:
    began = time.perf_counter()
    core = StringsCore(
        blob, offsets, vocab.blob, vocab.offsets, vocab.special_ids, vocab.eos_ids, vocab.size, hub, HUB_TOKENS,
        order, given,
    )  # fmt: skip
    return _constraint(core, vocab, began)


def _arrays(strings: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Concatenated bytes and offsets."""
    if isinstance(strings, (str, bytes)):
        raise ItemError("strings is one text; give a list of them")
    if isinstance(strings, tuple) and len(strings) == 2 and all(isinstance(x, np.ndarray) for x in strings):
        blob, offsets = strings
        if blob.dtype != np.uint8 or blob.ndim != 1 or offsets.ndim != 1 or offsets.dtype.kind not in "iu":
            raise ItemError(f"blob is {blob.dtype}{list(blob.shape)}, offsets {offsets.dtype}{list(offsets.shape)}")
        offsets = offsets.astype(np.int64)
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(blob) or bool(np.any(np.diff(offsets) < 0)):
            raise ItemError(f"offsets must rise from 0 to the {len(blob)} bytes of the blob")
        return np.ascontiguousarray(blob), offsets
    listed: list[bytes] = []
    for at, text in enumerate(strings):
        if isinstance(text, str):
            try:
                listed.append(text.encode())
            except UnicodeEncodeError as error:
                raise ItemError(f"text {at} is not Unicode: {error}") from None
        elif isinstance(text, bytes):
            listed.append(text)
        else:
            raise ItemError(f"text {at} is {type(text).__name__}, not str or bytes")
    offsets = np.zeros(len(listed) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, listed), np.int64, len(listed)), out=offsets[1:])
    return np.frombuffer(b"".join(listed), np.uint8), offsets
