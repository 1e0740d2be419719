"""The rules of a shape's objects.

Where only names are told apart, an object is a chain of its members (:meth:`.Productions.object`), or in any order a
list of them (:class:`wfsa.grammar.ir.Unordered`).  Names in classes (``patternProperties``, ``propertyNames``,
what is unevaluated), conditions that some member has to meet, and counts need a state beside it: the names are parted
into classes, each member's values by the conditions that they meet, and :meth:`.Productions.object_that_counts` makes
the rules.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from ...ir import MAX_UNITS
from ..domains.handles import Handle, number_of
from ..domains.shape import Shape
from .context import Empty, LoweringContext, Place, Symbol
from .productions import Asked, Choice, Extra, Member, Options

MAX_KINDS = 256  # of values of one property


class Objects:
    """Makes the rules of one shape's objects."""

    __slots__ = ("_any_order", "_context", "_objects", "_path", "_place", "_shape")

    def __init__(self, context: LoweringContext, shape: Shape, place: Place) -> None:
        self._context = context
        self._shape, self._objects, self._path = shape, shape.objects, shape.path
        self._place = place
        self._any_order = context.document.options.property_order == "any"

    def symbol(self) -> Symbol:
        """Return the symbol of the objects."""
        objects, context, out, path = self._objects, self._context, self._context.out, self._path
        counts = objects.min_properties or objects.max_properties is not None
        if objects.universals or objects.existentials or counts:
            return self._with_state()
        properties, required = objects.properties, frozenset(objects.required)
        members: list[Member] = []
        for name, handle in properties.items():
            value = context.child(handle)
            key = None if isinstance(value, Empty) else out.key(name, path)
            if isinstance(value, Empty) or key is None:
                if name in required:
                    return self._lacking(name, value)
                continue
            members.append((key, value, name in required))
        others = [name for name in dict.fromkeys(objects.required) if name not in properties]
        rest = objects.additional
        is_closed = isinstance(rest, tuple) and rest[0] is False
        more = None if is_closed else context.child(rest)
        extra: tuple[int, int] | None = None
        if more is not None and not isinstance(more, Empty):
            for name in others:
                key = out.key(name, path)
                if key is None:
                    return self._lacking(name, more)
                members.append((key, more, True))
            extra = out.other_key((*properties, *others), path), more
        elif others:
            return Empty(f"property {others[0]!r} is required and additionalProperties admits nothing for it", path)
        # One name has an order, too, where others may come before it.
        has_order = self._any_order and len(properties) + len(others) > is_closed
        return out.object(tuple(members), extra, path, self._place.in_advance, not has_order)

    def _lacking(self, name: str, value: object) -> Empty:
        """Return why a required property cannot be written: for its value, or else for its name."""
        if isinstance(value, Empty):
            return Empty(f"property {name!r} is required and nothing fits it: {value.why}", value.path)
        return Empty(f"the required name {name!r} has no spelling in UTF-8", self._path)

    # ---- with a state beside the chain ---------------------------------------------------------------------------
    def _with_state(self) -> Symbol:
        """Return the symbol of objects whose keys fall into classes, or that count."""
        context, objects, path = self._context, self._objects, self._path
        members = self._members()
        if isinstance(members, Empty):
            return members
        extras: list[Extra] = []
        for texts, value, asked in self._shape.objects.name_classes(context.read, self._shape.path):
            got = self._choices(value, asked)
            if not isinstance(got, Empty):
                extras.append((context.out.class_key(texts, path), got))
        low, high = objects.min_properties, objects.max_properties
        if high is not None and low > high:
            return Empty(f"an object needs {low} properties and can have {high}", path)
        low, high = min(low, MAX_UNITS - 1), None if high is not None and high >= MAX_UNITS else high
        if high is not None and not extras and high >= len(members):
            high = None
        needed = sum(is_required for _, _, is_required in members)
        if (high is not None and high < needed) or (not extras and low > len(members)):
            few = f"only {len(members)} names" if high is None or high >= needed else f"at most {high} properties"
            return Empty(f"an object needs {max(low, needed)} properties and can have {few}", path)
        if low <= needed:
            low = 0
        if high == needed:
            members, extras = [member for member in members if member[2]], []
        wanted = (1 << len(objects.existentials)) - 1
        if not can_meet(wanted, [got for _, got, _ in members], [got for _, got in extras]):
            return Empty("no property can satisfy one of the conditions", path)
        # What each of a required member's values meets needs no note.
        for _, got, is_required in members:
            if is_required:
                wanted &= ~reduce(and_, (bits for _, bits in got))
        members = [(key, self._noting(wanted, got), is_required) for key, got, is_required in members]
        extras = [(key, self._noting(wanted, got)) for key, got in extras]
        context.may_be_empty = context.may_be_empty or not self._any_order  # no state may be an end
        bounds = Asked(low, high, wanted, not self._any_order)
        return context.out.object_that_counts(tuple(members), tuple(extras), bounds, path, self._place.in_advance)

    def _members(self) -> list[Options] | Empty:
        """Return the members whose names the shape speaks of."""
        read, objects = self._context.read, self._objects
        members: list[Options] = []
        for name in self._shape.objects.listed_names():
            relevant = [
                (i, asked)
                for i, wanted in enumerate(objects.existentials)
                for keys, asked in wanted
                if read.in_class(name, keys)
            ]
            got = self._choices(self._shape.objects.all_of_member(name, read, True), relevant)
            key = None if isinstance(got, Empty) else self._context.out.key(name, self._path)
            if isinstance(got, Empty) or key is None:
                if name in objects.required:
                    return self._lacking(name, got)
                continue
            members.append((key, got, name in objects.required))
        return members

    def _choices(self, handle: Handle, relevant: list[tuple[int, Handle]]) -> tuple[Choice, ...] | Empty:
        """Return a member's values as (symbol, conditions met), told apart by the conditions that they meet.

        relevant: the number of a condition, and what it asks of these values.
        """
        asked_of: dict[int, Handle] = {}
        bits_of: dict[int, int] = {}  # by what is asked
        for i, asked in relevant:
            asked_of[number_of(asked)] = asked
            bits_of[number_of(asked)] = bits_of.get(number_of(asked), 0) | 1 << i
        kinds = ((bits_of[number], asked) for number, asked in asked_of.items())
        lacking = Empty("the conditions on it exclude each other", self._path)
        choices: list[Choice] = []
        for value, met in self._context.read.parted(handle, kinds, 2, MAX_KINDS, self._path):
            symbol = self._context.child(value)
            if isinstance(symbol, Empty):
                lacking = symbol
            else:
                choices.append((symbol, met))
        return self._noting(-1, tuple(choices)) if choices else lacking

    def _noting(self, conditions: int, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        """Return choices that tell of these conditions only whether they are met."""
        by_bits: dict[int, list[int]] = {}
        for value, met in choices:
            by_bits.setdefault(met & conditions, []).append(value)
        union = self._context.out.union
        return tuple((union(tuple(dict.fromkeys(v)), self._path), met) for met, v in by_bits.items())


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
