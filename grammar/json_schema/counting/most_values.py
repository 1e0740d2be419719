"""Upper bounds on the number of values of a schema, through references that lead back."""

from __future__ import annotations

from collections.abc import Sequence

from wfsa.errors import LimitError

from ...language import ENDLESS, n_words
from ..domains.handles import Handle, number_of
from ..domains.shape import Shape
from ..domains.types import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from ..read.alternatives import Alternatives
from ..spelling.finite import Key, json_key
from .few_values import FewValues
from .name_classes import listed_names, name_classes, value_of
from .scalar_counts import count_numbers

MAX_FEW = 64  # arrays and objects that are listed
MAX_ROUNDS = 8  # in which upper bounds may grow
MAX_BOUNDS = 200  # schemas that have an upper bound
MAX_ITEMS = 64  # of an array, and names of an object, that are counted


class MostValues:
    """Bounds the number of values of the children of one document.

    A bound is the least fixed point of the equations that bound a schema's values by those of its children.  It is
    reached from 0 upwards: after k rounds a bound holds for all values that nest k deep.  What still grows after
    `MAX_ROUNDS` is taken as endless, and so is what comes after `MAX_BOUNDS` schemas.
    """

    __slots__ = ("_bounds", "_few", "_n_settled", "_read")

    def __init__(self, read: Alternatives) -> None:
        self._read = read
        self._few = FewValues(read, MAX_FEW)
        self._bounds: dict[int, tuple[Handle, int]] = {}
        self._n_settled = 0  # of the bounds, in the order in which they were noted: those that no longer grow

    def of_union(self, handles: Sequence[Handle]) -> int:
        """An upper bound on the number of values that are in any of the given children."""
        most = self._of_union(handles)
        while len(self._bounds) > self._n_settled:  # children have been noted, perhaps only now that others have bounds
            self._settle()
            most = self._of_union(handles)
        return most

    def _settle(self) -> None:
        """Raise the bounds that have been noted until none of them grows."""
        rounds, grows = 0, True
        while grows:
            rounds, grows, n_known = rounds + 1, False, len(self._bounds)
            for number, (handle, most) in list(self._bounds.items())[self._n_settled :]:
                if most < ENDLESS and (more := self._of_union([handle])) > most:
                    self._bounds[number] = handle, more if rounds < MAX_ROUNDS else ENDLESS
                    grows = True
            grows = grows or len(self._bounds) > n_known
        self._n_settled = len(self._bounds)

    def _of(self, handle: Handle) -> int:
        """The bound of a child as far as it is known."""
        number = number_of(handle)
        if number not in self._bounds:
            self._bounds[number] = handle, ENDLESS if len(self._bounds) >= MAX_BOUNDS else 0
        return self._bounds[number][1]

    def _of_union(self, handles: Sequence[Handle]) -> int:
        listed: set[Key] = set()
        most = 0
        for handle in handles:
            for shape in self._read.described(handle):
                most = min(most + self._of_shape(shape, listed), ENDLESS)
                if most >= ENDLESS:
                    return ENDLESS
        return min(most + len(listed), ENDLESS)

    def _of_shape(self, s: Shape, listed: set[Key]) -> int:
        """The values of a shape but those that are `listed`, to which some are added."""
        accepts = self._read.accepts
        if s.loose:
            return ENDLESS
        if s.values is not None:
            listed.update(json_key(v) for v in s.values if accepts(v, s))
            return 0
        listed.update(json_key(v) for v in [None] * bool(s.mask & NULL) + [False, True] * bool(s.mask & BOOLEAN))
        most = 0
        if s.mask & NUMBER:
            most += count_numbers(s).most
        if s.mask & STRING:
            tree = s.strings.language_beside_excluded()
            most += 0 if tree is None else n_words(tree).most
        for kind, empty in ((ARRAY, []), (OBJECT, {})):
            if s.mask & kind and most < ENDLESS:
                some = self._few.of_shape(s._replace(mask=kind))
                if some is not None:
                    listed.update(map(json_key, some))
                    continue
                if accepts(empty, s):
                    listed.add(json_key(empty))
                most += self._of_arrays(s) if kind == ARRAY else self._of_objects(s)
        return most

    def _of_arrays(self, s: Shape) -> int:
        """The arrays with items."""
        for kind in s.arrays.contains:
            if kind.low and self._of(kind.handle) < (kind.low if s.arrays.unique else 1):
                return 0
        total, product, n = 0, 1, len(s.arrays.prefix)
        for length in range(1, MAX_ITEMS + 1):
            if length == (s.arrays.max_items or ENDLESS) + 1 or s.arrays.max_items == 0:
                return total
            some = self._of(s.arrays.item(length - 1))
            product *= 0 if s.arrays.unique and length - n > some else some
            if product >= ENDLESS:
                return ENDLESS
            if not product:
                return total
            if length >= s.arrays.min_items:
                total += product
        return ENDLESS

    def _of_objects(self, s: Shape) -> int:
        """The objects with members."""
        product = 1
        for name in listed_names(s):
            product *= self._of(value_of(self._read, s, name)) + (name not in s.objects.required)
            if product >= ENDLESS:
                return ENDLESS
        if not product:
            return 0
        if s.objects.max_properties is None or s.objects.max_properties > len(s.objects.required):
            try:
                classes = list(name_classes(self._read, s))
            except LimitError:
                return ENDLESS
            for names in classes:
                some = self._of(names.value)
                if some and (n := n_words(names.texts).most):
                    product = ENDLESS if n > MAX_ITEMS or some >= ENDLESS else product * (1 + some) ** n
                if product >= ENDLESS:
                    return ENDLESS
        return product - (not s.objects.required)
