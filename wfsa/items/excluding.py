"""What each request must not return: items that its user has seen, on top of a filter that requests share.

    filters = index.excluding([[3, 17], None, seen], in_stock)            # one filter a request
    beams = index.beam_step(beams, logits, filters=filters)
    index.item_ids(beams.nodes, filters)

Ids are looked up once a request; what is found, a step reads at each node (``ExcludingFilter``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wfsa.errors import ItemError
from wfsa.items.filter import AnyFilter, ExcludingFilter, Filters, check_filters, filter_of_request
from wfsa.items.index_data import IndexData
from wfsa.items.item_ids import Missing, check_missing, wanted_ids
from wfsa.items.nodes import Int64s


def excluding(
    index: IndexData, exclude: Sequence[Any], filters: Filters, missing: Missing = "error"
) -> list[AnyFilter | None]:
    """See ``ItemIndex.excluding``."""
    check_missing(missing)
    listed = exclusion_lists(exclude)
    check_filters(filters, len(listed), index.fingerprint)
    made: list[AnyFilter | None] = []
    for request, ids in enumerate(listed):
        shared = filter_of_request(filters, request)
        if ids is not None:
            positions, _ = index.positions_of_ids(wanted_ids(index.ids, ids), missing)
            shared = without(index, shared, positions)
        made.append(shared)
    return made


def without(index: IndexData, shared: AnyFilter | None, excluded: Int64s) -> AnyFilter | None:
    """A filter less the items at positions, in any order; the filter itself where there are none."""
    if not len(excluded):
        return shared
    if isinstance(shared, ExcludingFilter):
        return ExcludingFilter.of_positions(index, np.union1d(shared.excluded, excluded), shared.base)
    return ExcludingFilter.of_positions(index, np.unique(excluded), shared)


def exclusion_lists(exclude: Any) -> list[Any]:
    """The ids of each request. Raises ItemError on a list of ids in place of a list of such lists."""
    for given in [exclude] if isinstance(exclude, (str, bytes)) or not hasattr(exclude, "__len__") else exclude:
        if given is exclude or not (given is None or hasattr(given, "__len__")) or isinstance(given, (str, bytes)):
            raise ItemError(f"exclude has {given!r}; give a list of ids, or None, for each request")
    return list(exclude)
