"""What the parts of one lowering share: the document, its alternatives, the grammar, and the symbols made so far.

Symbols are found by identity: of a schema's dict, or of a `Compound` handle.  What is behind a handle is lowered at
most once; :mod:`..lowering` gives the function that does it, and :mod:`.objects` and :mod:`.arrays` ask here for the
symbols of children.
"""

from __future__ import annotations

from collections.abc import Callable

from ..domains.handles import Handle, number_of, path_of
from ..domains.shape import Shape
from ..read.alternatives import Alternatives
from ..read.document import Document
from .lexemes import lexemes
from .productions import Productions


class Memo:
    __slots__ = ("_describe", "_lower", "_symbols", "document", "lexemes", "may_be_empty", "out", "read")

    def __init__(
        self,
        document: Document,
        lower: Callable[[list[Shape], str], int | None],
        read: Alternatives | None = None,
        out: Productions | None = None,
        describe: Callable[[Handle], list[Shape]] | None = None,
    ) -> None:
        """`read`, `out` and `describe` are given where two lowerings share one document."""
        self.document = document
        self.read = read or Alternatives(document)
        self.lexemes = lexemes(document.options, document.gap, document.barred)
        self.out = out or Productions(self.lexemes)
        self._describe = describe or self.read.described  # what is written for a child
        # Is there a nonterminal that was used before its rules were known?  Then it may derive nothing.
        self.may_be_empty = False
        self._lower = lower  # (the shapes of a schema, its path) -> its symbol; None if nothing satisfies it
        self._symbols: dict[int, int | None] = {}  # id of a schema or a compound -> its symbol

    def child(self, handle: Handle) -> int | None:
        """The symbol of a schema or a compound; None if nothing satisfies it."""
        key = number_of(handle)
        if key in self._symbols:
            return self._symbols[key]
        got = self._symbols[key] = self._lower(self._describe(handle), path_of(handle))
        return got

    def close(self) -> None:
        """Drop the functions that lead back up, so that everything of a lowering is freed without the collector."""
        del self._lower, self._describe

    def empty(self, why: str, path: str) -> None:
        """Note why nothing satisfies the schema at `path`; the last reason is the one that is told."""
        self.read.why = why, path


class Place:
    """Where the lowering of the objects, or of the arrays, of one shape stands."""

    __slots__ = ("is_open", "is_seen", "shape", "symbol")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.is_seen = self.is_open = False
        self.symbol: int | None = None  # a nonterminal's is negative; None if nothing satisfies the shape

    def in_advance(self) -> int | None:
        """Return the nonterminal that the shape got while it was open, if it did."""
        return self.symbol if self.symbol is not None and self.symbol < 0 else None
