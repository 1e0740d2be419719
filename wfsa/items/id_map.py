"""Finds items by id in time of the ids asked for: positions in the index's leaf order, from a map kept in memory.

The item at position p of the leaf order is input row ``item_order[p]``. An index makes its map when few ids are looked
up for the first time, and keeps it; files do not hold it. With ids of the caller the map takes 6 bytes an item
(ext/items/id_map.hpp); where ids are row numbers it is the inverse of ``item_order``, 4 or 8 bytes an item; where ids
are ranks a position is the id, and nothing is made. docs/items.md has the times.

Ids that are a large part of the catalogue are found faster by one pass over all ids (``rows_among``), without a map.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wfsa._ext.items_ids import BytesMap, IntegerMap
from wfsa.errors import LimitError
from wfsa.items.item_ids import Ids, StringIds
from wfsa.items.nodes import Int64s

MAX_ITEMS: Final = (1 << 32) - 1
"""More items have no map: their positions do not fit into 32 bits."""
_LOG: Final = logging.getLogger("wfsa")
_BUILDING: Final = threading.Lock()


class IdMap:
    """Positions by id; ``ids`` None where the ids are input rows. At most :data:`MAX_ITEMS` items."""

    __slots__ = ("_inverse", "_map", "n_items", "nbytes", "seconds")

    def __init__(self, ids: Ids | None, item_order: npt.NDArray[Any] | None, n_items: int) -> None:
        began = time.perf_counter()
        self.n_items, self.nbytes = n_items, 0
        self._map: BytesMap | IntegerMap | None = None
        self._inverse: npt.NDArray[Any] | None = None
        if isinstance(ids, StringIds):
            self._map = BytesMap(ids.data, ids.offsets, ids.width, ids.n, item_order)
        elif ids is not None:
            self._map = IntegerMap(np.ascontiguousarray(ids), item_order)
        elif item_order is not None:
            self._inverse = np.empty_like(item_order)
            self._inverse[item_order] = np.arange(n_items, dtype=item_order.dtype)
            self.nbytes = self._inverse.nbytes
        if self._map is not None:
            self.nbytes = self._map.nbytes
        self.seconds = time.perf_counter() - began

    def find(self, wanted: Ids) -> tuple[Int64s, Int64s]:
        """Positions int64[total] of the wanted ids, one id after another, and how many items each has, int64[n].

        The positions of an id rise. The wanted ids are of the kind of the index's ids.
        """
        if not len(wanted):  # of no kind
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if isinstance(self._map, BytesMap):
            assert isinstance(wanted, StringIds)
            return self._map.find(wanted.data, wanted.offsets, wanted.width, wanted.n)
        assert not isinstance(wanted, StringIds)
        if self._map is not None:
            return self._map.find(np.ascontiguousarray(wanted))
        inside = (wanted >= 0) & (wanted < self.n_items)
        positions = wanted[inside]
        if self._inverse is not None:
            positions = self._inverse[positions].astype(np.int64)
        return positions, inside.astype(np.int64)

    def is_distinct(self) -> bool:
        """Whether no two items have one id."""
        return self._map is None or self._map.is_distinct()


class LazyIdMap:
    """The map of one index, made by the first thread that asks for it."""

    __slots__ = ("_made", "_source")

    def __init__(self, ids: Ids | None, item_order: npt.NDArray[Any] | None, n_items: int) -> None:
        self._source = (ids, item_order, n_items)
        self._made: IdMap | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the map, 0 before it is made."""
        return 0 if self._made is None else self._made.nbytes

    def get(self) -> IdMap:
        """The map; the first call makes it. Raises LimitError on more than :data:`MAX_ITEMS` items."""
        if self._made is None:
            with _BUILDING:
                if self._made is None:
                    if self._source[2] > MAX_ITEMS:
                        raise LimitError(f"{self._source[2]:,} items: a map of ids has at most {MAX_ITEMS:,}")
                    made = IdMap(*self._source)
                    milliseconds = 1000 * made.seconds
                    _LOG.debug("map of %d item ids: %.1f ms, %d bytes", made.n_items, milliseconds, made.nbytes)
                    self._made = made
        return self._made
