"""A set of items as a trie: the codes that may follow a prefix, and the numbers of sequences below them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from wfsa.errors import ItemError
from wfsa.items import ItemFilter, ItemIndex

_MOST_ITEMS: Final = 50
MOST_FILTER: Final = 100_000


def below(index: ItemIndex, codes: Sequence[int], only: Sequence[int] | None, limit: int = 200) -> dict[str, Any]:
    """Returns the children of the node that a prefix leads to, most sequences first.

    `only`: ids of the live items; None for all. Raises ItemError for codes that no item begins with.
    """
    if len(codes) > index.n_levels:
        raise ItemError(f"the prefix has {len(codes)} codes, an item has at most {index.n_levels}")
    live = None if only is None else ItemFilter.of_ids(index, np.asarray(only))
    node = np.asarray([index.root], np.int64)
    for level, code in enumerate(codes):
        if not 0 <= code < index.levels.sizes[level]:
            raise ItemError(f"code {code} is out of range: level {level} has {index.levels.sizes[level]:,}")
        node = index.advance(node, np.asarray([index.levels.offsets[level] + code]))
        if node[0] < 0:
            raise ItemError(f"no item begins with {' '.join(map(str, codes[: level + 1]))}")
    children, low, high = index.codes_after(int(node[0]))
    sizes = high - low
    alive = sizes if live is None else live.rank(high) - live.rank(low)
    order = np.lexsort((children, -alive))
    order = order[alive[order] > 0]
    ends = index.item_ids(node, live)[0]
    return {
        "codes": list(codes),
        "levels": index.n_levels,
        "sequences": int(index.n_below(node)[0]),
        "live": int(alive.sum()) if live is not None and len(children) else None,
        "count": len(order),
        "children": [[int(children[at]), int(sizes[at]), int(alive[at])] for at in order[:limit]],
        "items": [str(one) for one in ends[:_MOST_ITEMS]],
        "n_items": len(ends),
    }
