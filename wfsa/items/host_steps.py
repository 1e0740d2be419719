"""Steps on the host, for whatever has the parts of one: an index, or a state of a changing catalogue.

Arguments are checked here; ``wfsa/items/backends/`` computes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from wfsa.errors import ItemError
from wfsa.items import answers
from wfsa.items.backends import cython as compiled
from wfsa.items.backends import numpy as in_numpy
from wfsa.items.beams import Beams, Normalise
from wfsa.items.build_spec import MAX_THREADS
from wfsa.items.item_ids import ItemId
from wfsa.items.nodes import Int64s

if TYPE_CHECKING:
    from wfsa._ext.items_step import StepCore
    from wfsa.items.filter import AnyFilter
    from wfsa.items.index_data import IndexData
    from wfsa.items.levels import Levels

Backend = Literal["cython", "numpy"]
F = TypeVar("F")
"""A request's filter."""


class HostSteps(ABC, Generic[F]):
    """The steps over items, and what they lead to.

    A node is an int64, in a state of a changing catalogue int64[2]. Shapes below are of nodes: ``nodes[…]`` has one
    more axis of 2 there. ``filters`` are one for all requests, or one (or None) a request, which is the first axis.
    ``backend="numpy"`` is the array step that devices have, slower and with the same results.
    """

    __slots__ = ()

    # --- what is stepped through ------------------------------------------------------------------------------------

    core: StepCore

    @property
    @abstractmethod
    def levels(self) -> Levels: ...

    @property
    @abstractmethod
    def root(self) -> Any:
        """The node of the empty prefix; -1 without items."""

    @property
    @abstractmethod
    def has_prefix_items(self) -> bool:
        """Whether some item is a proper prefix of another."""

    @property
    @abstractmethod
    def parts(self) -> tuple[IndexData, ...]:
        """The indexes that a node has an id of."""

    @property
    @abstractmethod
    def present(self) -> tuple[AnyFilter | None, ...]:
        """What there is of each part; None: all of it."""

    @abstractmethod
    def part_filters(self, filters: Any, n_requests: int) -> list[tuple[AnyFilter | None, ...]] | None:
        """For each request a filter of each part; None for no filters. Raises ItemError on filters that do not fit."""

    @abstractmethod
    def item_ids(self, nodes: Any, filters: Any = None) -> list[list[ItemId]]:
        """For each of the flattened nodes the ids of the live items that end there."""

    # --- the step ---------------------------------------------------------------------------------------------------

    def allowed(
        self, nodes: Any, filters: F | Sequence[F | None] | None = None, *, backend: Backend = "cython"
    ) -> npt.NDArray[np.int32]:
        """Which tokens may come next: packed int32[…, ceil(logits_size / 32)] of nodes[…]."""
        masks: npt.NDArray[np.int32] = _backend(backend).allowed(self, self._nodes(nodes), filters)
        return masks

    def children(
        self, nodes: Any, filters: F | Sequence[F | None] | None = None, *, backend: Backend = "cython"
    ) -> tuple[Int64s, npt.NDArray[np.int32], Int64s]:
        """Next tokens and nodes of the flattened nodes: indptr int64[n + 1], tokens int32[total], nodes[total].

        Tokens rise, but for the end token, which comes first.
        """
        found: tuple[Int64s, npt.NDArray[np.int32], Int64s] = _backend(backend).children(
            self, self._nodes(nodes), filters
        )
        return found

    def mask_logits(
        self, logits: Any, nodes: Any, filters: F | Sequence[F | None] | None = None, *, backend: Backend = "cython"
    ) -> npt.NDArray[Any]:
        """A copy of ``logits[…, logits_size]`` of nodes[…] with -inf at every token that is not allowed.

        Its type is that of the logits; float32 of torch's bfloat16.
        """
        nodes = self._nodes(nodes)
        masked: npt.NDArray[Any] = _backend(backend).mask_logits(
            self, self._logits(logits, self._shape(nodes)), nodes, filters
        )
        return masked

    def advance(
        self, nodes: Any, tokens: Any, filters: F | Sequence[F | None] | None = None, *, backend: Backend = "cython"
    ) -> Int64s:
        """The nodes after one token each, integers […] of nodes[…]; -1 where the token is not allowed."""
        nodes, tokens = self._nodes(nodes), np.asarray(tokens)
        shape = self._shape(nodes)
        if tokens.shape != shape or tokens.dtype.kind not in "iu":
            raise ItemError(f"tokens are {tokens.dtype}{list(tokens.shape)}, not integers {list(shape)}")
        following: Int64s = _backend(backend).advance(self, nodes, tokens, filters)
        return following

    def beam_step(
        self,
        beams: Beams,
        logits: Any,
        *,
        width: int | None = None,
        normalise: Normalise = "full",
        filters: F | Sequence[F | None] | None = None,
        backend: Backend = "cython",
        threads: int = 1,
    ) -> Beams:
        """Log-softmax, mask, cumulative scores, exact top ``width`` (default: as many) a request, advance.

        ``logits``: float[B, M, logits_size], bfloat16 among them (of torch or ml_dtypes). The rules, also for ties, are
        in ``wfsa.items.beams``.
        ``threads`` share out the requests; the back end numpy uses one.
        """
        nodes = self._nodes(beams.nodes)
        rows = self._shape(nodes)
        if len(rows) != 2:
            raise ItemError(f"beams have nodes of shape {list(rows)}, not [B, M]")
        for name in ("scores", "valid", "sequences"):
            shape = np.shape(getattr(beams, name))
            if shape[:2] != rows or len(shape) != 2 + (name == "sequences"):
                raise ItemError(f"beams have {name} of shape {list(shape)} for nodes of shape {list(rows)}")
        if self.has_prefix_items and self.levels.end_token is None:
            raise ItemError("an item is a prefix of another: beam_step needs an index built with an end_token")
        width = rows[1] if width is None else width
        if not 1 <= width < 1 << 31:
            raise ItemError(f"width must be 1 to {(1 << 31) - 1}, not {width}")
        if not 1 <= threads <= MAX_THREADS:
            raise ItemError(f"threads must be 1 to {MAX_THREADS}, not {threads}")
        logits = self._logits(logits, rows)
        if _backend(backend) is in_numpy:
            return in_numpy.beam_step(self, beams, logits, width, normalise, filters)
        return compiled.beam_step(self, replace(beams, nodes=nodes), logits, width, normalise, filters, threads)

    # --- before and after the steps ---------------------------------------------------------------------------------

    def start(self, n_requests: int, width: int) -> Beams:
        """One valid beam a request at the root."""
        return Beams.start(self, n_requests, width)

    def top(
        self, beams: Beams, k: int, filters: F | Sequence[F | None] | None = None
    ) -> list[list[tuple[ItemId, float]]]:
        """For each request the best items of its beams with their scores: at most ``k`` pairs (id, score), best first.

        beams     of NumPy, or of a back end on a device
        filters   those of the steps: one for all requests, or one (or None) a request; only live items are returned

        Items that share a sequence have its score. **Ties**: the lower beam, then the lower input row; in a catalogue
        the base's items come before the additions, which are in the order of adding. Beams at which no item ends give
        nothing. Raises ItemError on ``k`` below 1 and on filters that do not fit.
        """
        return answers.top(self, beams, k, filters)

    def ids_of_tokens(self, tokens: Any, filters: F | Sequence[F | None] | None = None) -> list[list[ItemId]]:
        """For each row of tokens the ids of the items that it spells, [] where it spells none.

        tokens    integers [rows, T], of NumPy, torch or JAX: what a model generated, without the prompt
        filters   one for all rows, or one (or None) a request, whose rows follow one another; only live items are
                  returned

        A row is read until an item is complete (with the end token, where the index has one); what follows, such as
        padding, is not read. A row that leaves the catalogue before, or that ends where no item ends, is []. Raises
        ItemError on anything but integers [rows, T] and on filters that do not fit.
        """
        return answers.ids_of_tokens(self, tokens, filters)

    # --- checks -----------------------------------------------------------------------------------------------------

    def _shape(self, nodes: Int64s) -> tuple[int, ...]:
        return nodes.shape if len(self.parts) == 1 else nodes.shape[:-1]

    def _nodes(self, nodes: Any) -> Int64s:
        array = np.array(nodes, order="C")  # a copy: what is checked is what is used, whoever writes `nodes`
        if array.dtype != np.int64:
            raise ItemError(f"nodes are {array.dtype}, not int64")
        n_parts = len(self.parts)
        if n_parts > 1 and array.shape[-1:] != (n_parts,):
            raise ItemError(f"nodes are int64{list(array.shape)}, not int64[…, {n_parts}]")
        bad = self.core.bad_node(array)
        if bad != -1:
            raise ItemError(f"{bad} is no node of this index")
        return array

    def _logits(self, logits: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        # NumPy has no bfloat16: torch's are widened by torch, JAX's are arrays of the dtype that ml_dtypes adds.
        array = np.asarray(logits.float() if str(getattr(logits, "dtype", "")) == "torch.bfloat16" else logits)
        wide = array.dtype.char in "efd" or array.dtype.name == "bfloat16"
        want = (*shape, self.levels.logits_size)
        if array.shape != want or not wide:
            found = f"{array.dtype}{list(array.shape)}"
            raise ItemError(f"logits are {found}, not float32, float16 or bfloat16 {list(want)}")
        return array


def _backend(name: Backend) -> Any:
    if name == "cython":
        return compiled
    if name == "numpy":
        return in_numpy
    raise ItemError(f"backend={name!r}; here it is cython or numpy")
