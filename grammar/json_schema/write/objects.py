"""The rules of a shape's objects.

Where only names are told apart, an object is a chain of its members (:meth:`.Productions.object`), or in any order a
list of them (:meth:`.Productions.object_in_any_order`).  Names in classes (``patternProperties``, ``propertyNames``,
what is unevaluated), conditions that some member has to meet, and counts need a state beside it: the names are parted
into classes, each member's values by the conditions that they meet, and :meth:`.Productions.object_that_counts` makes
the rules.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from ...ir import MAX_UNITS
from ..counting.name_classes import listed_names, name_classes, value_of
from ..domains.handles import Handle, number_of
from ..domains.shape import Shape
from .memo import Memo, Place
from .productions import Choice, Extra, Member, Options

MAX_KINDS = 256  # of values of one property


class Objects:
    """Makes the rules of objects."""

    __slots__ = ("_any_order", "_memo")

    def __init__(self, memo: Memo) -> None:
        self._memo = memo
        self._any_order = memo.document.options.property_order == "any"

    def symbol(self, shape: Shape, place: Place) -> int | None:
        """The symbol of a shape's objects; None if there are none."""
        any_order = False
        if self._any_order:
            # One name has an order, too, where others may come before it.
            named, rest = len({*shape.objects.properties, *shape.objects.required}), shape.objects.additional
            any_order = named > (1 if isinstance(rest, tuple) and rest[0] is False else 0)
        counts = shape.objects.min_properties or shape.objects.max_properties is not None
        if shape.objects.universals or shape.objects.existentials or counts:
            return self._with_state(shape, place)
        memo, path, properties = self._memo, shape.path, shape.objects.properties
        required = frozenset(shape.objects.required)
        members: list[Member] = []
        for name, handle in properties.items():
            value = memo.child(handle)
            key = None if value is None else memo.out.key(name, path)
            if value is None or key is None:
                if name in required:
                    self._lacks(name, path, value is not None)
                    return None
                continue
            members.append((key, value, name in required))
        extra: tuple[int, int] | None = None
        others = [name for name in dict.fromkeys(shape.objects.required) if name not in properties]
        rest = shape.objects.additional
        value = None if isinstance(rest, tuple) and rest[0] is False else memo.child(rest)
        if value is None and others:
            memo.empty(f"property {others[0]!r} is required and additionalProperties admits nothing for it", path)
            return None
        if value is not None:
            for name in others:
                key = memo.out.key(name, path)
                if key is None:
                    self._lacks(name, path, True)
                    return None
                members.append((key, value, True))
            extra = memo.out.other_key((*properties, *others), path), value
        make = memo.out.object_in_any_order if any_order else memo.out.object
        return make(tuple(members), extra, path, place.in_advance())

    def _lacks(self, name: str, path: str, is_name: bool) -> None:
        """A required property cannot be written, for its name or for its value."""
        if is_name:
            self._memo.empty(f"the required name {name!r} has no spelling in UTF-8", path)
        else:
            why, where = self._memo.read.why
            self._memo.empty(f"property {name!r} is required and nothing fits it: {why}", where)

    # ---- with a state beside the chain ---------------------------------------------------------------------------

    def _with_state(self, shape: Shape, place: Place) -> int | None:
        """The same for objects whose keys fall into classes, or that count."""
        memo, path = self._memo, shape.path
        members = self._members(shape)
        if members is None:
            return None
        extras: list[Extra] = []
        for texts, value, asked in name_classes(memo.read, shape):
            got = self._choices(shape, value, asked)
            if got:
                extras.append((memo.out.class_key(texts, path), got))
        low, high = shape.objects.min_properties, shape.objects.max_properties
        if high is not None and low > high:
            memo.empty(f"an object needs {low} properties and can have {high}", path)
            return None
        low, high = min(low, MAX_UNITS - 1), None if high is not None and high >= MAX_UNITS else high
        if high is not None and not extras and high >= len(members):
            high = None
        needed = sum(is_required for _, _, is_required in members)
        if (high is not None and high < needed) or (not extras and low > len(members)):
            few = f"only {len(members)} names" if high is None or high >= needed else f"at most {high} properties"
            memo.empty(f"an object needs {max(low, needed)} properties and can have {few}", path)
            return None
        if low <= needed:
            low = 0
        if high == needed:
            members, extras = [member for member in members if member[2]], []
        wanted = (1 << len(shape.objects.existentials)) - 1
        if not can_meet(wanted, [got for _, got, _ in members], [got for _, got in extras]):
            memo.empty("no property can satisfy one of the conditions", path)
            return None
        # What each of a required member's values meets needs no note.
        sure = 0
        for _, got, is_required in members:
            sure |= reduce(and_, (bits for _, bits in got)) if is_required else 0
        wanted &= ~sure
        members = [(key, self._noting(wanted, got, path), is_required) for key, got, is_required in members]
        extras = [(key, self._noting(wanted, got, path)) for key, got in extras]
        memo.may_be_empty = memo.may_be_empty or not self._any_order  # no state may be an end
        return memo.out.object_that_counts(
            tuple(members), tuple(extras), low, high, wanted, not self._any_order, path, place.in_advance()
        )

    def _members(self, shape: Shape) -> list[Options] | None:
        """The members whose names the shape speaks of; None if a required one is impossible."""
        memo, required = self._memo, frozenset(shape.objects.required)
        members: list[Options] = []
        for name in listed_names(shape):
            relevant = [
                (i, asked)
                for i, wanted in enumerate(shape.objects.existentials)
                for keys, asked in wanted
                if memo.read.in_class(name, keys)
            ]
            got = self._choices(shape, value_of(memo.read, shape, name), relevant)
            key = memo.out.key(name, shape.path) if got else None
            if key is None:
                if name in required:
                    self._lacks(name, shape.path, bool(got))
                    return None
                continue
            members.append((key, got, name in required))
        return members

    def _choices(self, shape: Shape, handle: Handle, relevant: list[tuple[int, Handle]]) -> tuple[Choice, ...]:
        """A member's values as (symbol, conditions met), told apart by the conditions that they meet.

        relevant: the number of a condition, and what it asks of these values.
        """
        asked_of: dict[int, Handle] = {}
        bits_of: dict[int, int] = {}  # by what is asked
        for i, asked in relevant:
            asked_of[number_of(asked)] = asked
            bits_of[number_of(asked)] = bits_of.get(number_of(asked), 0) | 1 << i
        kinds = ((bits_of[number], asked) for number, asked in asked_of.items())
        parts = self._memo.read.parted(handle, kinds, 2, MAX_KINDS, shape.path)
        symbols = [(self._memo.child(value), met) for value, met in parts]
        return self._noting(-1, tuple((v, met) for v, met in symbols if v is not None), shape.path)

    def _noting(self, conditions: int, choices: tuple[Choice, ...], path: str) -> tuple[Choice, ...]:
        """Choices that tell of these conditions only whether they are met."""
        by_bits: dict[int, list[int]] = {}
        for value, met in choices:
            by_bits.setdefault(met & conditions, []).append(value)
        return tuple((self._memo.out.union(tuple(dict.fromkeys(v)), path), met) for met, v in by_bits.items())


def can_meet(wanted: int, members: list[tuple[Choice, ...]], others: list[tuple[Choice, ...]]) -> bool:
    """Whether conditions can be met by one choice of each member, and all choices of others."""
    for got in others:
        for _, bits in got:
            wanted &= ~bits
    for got in members:
        useful = [bits & wanted for _, bits in got]
        most = reduce(or_, useful, 0)
        if most in useful:
            wanted &= ~most
    if not wanted:
        return True
    first = wanted & -wanted
    return any(
        can_meet(wanted & ~bits, [*members[:k], *members[k + 1 :]], [])
        for k, got in enumerate(members)
        for _, bits in got
        if bits & first
    )
