"""Filters of a changing catalogue: sets of ids that stay true while items are added, replaced and removed.

An id has a *number* for as long as the catalogue has its base: the base's items have their positions (0 .. N - 1,
``wfsa/items/filter.py``), and every other id gets the next number from N on when it is first added. An id that is
replaced, or removed and added again, keeps its number. So bits by number say which ids are live, in every state of the
catalogue, and ``later`` says it for ids that had no number yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wfsa.errors import ItemError
from wfsa.items.excluding import without
from wfsa.items.filter import ItemFilter, PartFilters
from wfsa.items.index_data import IndexData
from wfsa.items.nodes import Int64s

if TYPE_CHECKING:
    from wfsa.items.live import LiveItems


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiveFilter:
    """Live items of a request in a changing catalogue; made by the methods of ``LiveItems``.

    A filter is a set of ids, or the complement of one, and later states of the catalogue take it: ids that were removed
    are not offered, and an id that is replaced or comes back is in the filter as before. **New ids** are not in a
    filter that was made before they were added, and are in its complement: ``filter_of_ids(in_stock)`` waits to be made
    again, ``~filter_of_ids(seen)`` lets them through. ``a & b``, ``a | b`` and ``~a`` are sets of ids. After a merge a
    filter is an ItemError, and has to be made again.

    base       bits of the base's items
    added      bool[K]: of the K ids that had been added to the base, by number
    later      whether ids that are added afterwards are in it
    lineage    the base and its changes: one object of their catalogue, anew with each merge
    """

    base: ItemFilter
    added: npt.NDArray[np.bool_]
    later: bool
    lineage: object
    _last: tuple[ItemFilter, IndexData, PartFilters] | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_last", None)

    def over(self, state: LiveItems) -> PartFilters:
        """This filter over one state: the base less what was removed, and the delta.

        O(N) bits once a state, which is then remembered.
        """
        last = self._last
        if last is not None and last[0] is state.live and last[1] is state.delta:
            return last[2]
        numbers, n_base = state.numbers, self.base.n_items
        inside = np.full(len(numbers), self.later)
        of_base, known = numbers < n_base, numbers < n_base + len(self.added)
        inside[of_base] = self.base.is_live(numbers[of_base])
        inside[known & ~of_base] = self.added[numbers[known & ~of_base] - n_base]
        both = self.base & state.live, ItemFilter.of_rows(state.delta, inside)
        object.__setattr__(self, "_last", (state.live, state.delta, both))
        return both

    def __and__(self, other: LiveFilter) -> LiveFilter:
        """Ids that are in both."""
        if not isinstance(other, LiveFilter):
            return NotImplemented
        mine, theirs = self._added_in_both(other)
        return LiveFilter(self.base & other.base, mine & theirs, self.later and other.later, self.lineage)

    def __or__(self, other: LiveFilter) -> LiveFilter:
        """Ids that are in either."""
        if not isinstance(other, LiveFilter):
            return NotImplemented
        mine, theirs = self._added_in_both(other)
        return LiveFilter(self.base | other.base, mine | theirs, self.later or other.later, self.lineage)

    def __invert__(self) -> LiveFilter:
        """Ids that are not in this one, those added later among them where this one leaves them out."""
        return LiveFilter(~self.base, ~self.added, not self.later, self.lineage)

    def _added_in_both(self, other: LiveFilter) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Bits of both over the additions that either knows."""
        check_lineage(other, self.lineage)
        n = max(len(self.added), len(other.added))
        mine, theirs = (np.append(one.added, np.full(n - len(one.added), one.later)) for one in (self, other))
        return mine, theirs

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LiveFilter):
            return NotImplemented
        if self.lineage is not other.lineage or self.later != other.later or self.base != other.base:
            return False
        return np.array_equal(*self._added_in_both(other))

    def __hash__(self) -> int:
        return hash((self.base, self.later))

    def __repr__(self) -> str:
        n_live, n_items = self.base.n_live + int(self.added.sum()), self.base.n_items + len(self.added)
        return f"LiveFilter({n_live:,} of {n_items:,} ids live, later ones {'live' if self.later else 'not'})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExcludingLiveFilter:
    """A filter of a changing catalogue, or all of it, less a few ids. Made by ``LiveItems.excluding``.

    base      the filter, whose bits requests share, or None: all ids
    numbers   int64[n]: the numbers of the excluded ids, rising and distinct
    lineage   that of a LiveFilter
    """

    base: LiveFilter | None
    numbers: Int64s
    lineage: object
    _last: tuple[ItemFilter, IndexData, PartFilters] | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_last", None)

    def over(self, state: LiveItems) -> PartFilters:
        """This filter over one state, which is then remembered; in time of the excluded ids and of the delta."""
        last = self._last
        if last is not None and last[0] is state.live and last[1] is state.delta:
            return last[2]
        of_base, of_delta = state.present if self.base is None else self.base.over(state)
        gone = self.numbers[self.numbers < state.base.n_items]
        added = np.zeros(state.delta.n_items, np.bool_)
        added[np.isin(state.numbers, self.numbers)] = True
        rows = state.delta.item_order
        positions = np.flatnonzero(added if rows is None else added[rows])
        both = without(state.base, of_base, gone), without(state.delta, of_delta, positions)
        object.__setattr__(self, "_last", (state.live, state.delta, both))
        return both

    def __repr__(self) -> str:
        base = "all items" if self.base is None else repr(self.base)
        return f"ExcludingLiveFilter({base}, less {len(self.numbers):,} ids)"


AnyLiveFilter = LiveFilter | ExcludingLiveFilter
LiveFilters = AnyLiveFilter | Sequence[AnyLiveFilter | None] | None


def excluding_numbers(shared: AnyLiveFilter | None, numbers: Int64s, lineage: object) -> ExcludingLiveFilter:
    """A filter less the ids with these numbers, in any order."""
    if isinstance(shared, ExcludingLiveFilter):
        return ExcludingLiveFilter(shared.base, np.union1d(shared.numbers, numbers), lineage)
    return ExcludingLiveFilter(shared, np.unique(numbers), lineage)


def check_lineage(one: Any, lineage: object) -> None:
    """Raise ItemError on what is not a LiveFilter, or is one of another catalogue or from before a merge."""
    if not isinstance(one, AnyLiveFilter):
        raise ItemError(f"a {type(one).__name__} in place of a LiveFilter: make one by items.filter_of_ids")
    if one.lineage is not lineage:
        raise ItemError(
            "a filter of another catalogue, or made before the catalogue was merged or its base loaded anew; make it "
            "again from the present state: items.filter_of_ids or filter_of_rows"
        )
