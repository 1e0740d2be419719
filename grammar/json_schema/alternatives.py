"""From schemas to alternatives: references followed, applicators distributed, conditions intersected.

Input: a schema of the document, or a handle to several at once.  Output: the shapes whose union it is (:mod:`.shape`).

    {type: object, properties: P, anyOf: [{required: [a]}, {required: [b]}]}    ->   P with a,   P with b

    allOf             intersection                      not         intersection of the complements of the shapes
    anyOf             union                             if          (if and then) or (not if and else)
    dependent...      (without the name) or (with it, and what it asks for)
    oneOf             each branch without what the others share with it
    unevaluated...    the shapes below note what the keywords on the way have evaluated (`Seen`)

What was evaluated is noted only where it is asked for: in the schema object that holds an ``unevaluated...``, and in
all that is applied to the same value.  Elsewhere it would cost time, and alternatives: a value that satisfies two
branches of an ``anyOf`` is evaluated by both, so that branches beside an ``unevaluated...`` are read as their subsets.

Only the schema itself is looked into, never its children, so recursion through children costs nothing here, and
recursion that meets no child is a loop without content: an error.  Everything is memoised by the identity of the
schema's dict, which the memo keeps alive, and by whether what it evaluates is noted.

Intersections multiply, so both the product of two unions and the number of compound handles have a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation, localcontext
from functools import partial
from itertools import combinations
from typing import Any, Literal

from wfsa.errors import LimitError, SchemaError
from wfsa.grammar.allowance import check
from wfsa.grammar.json_schema.closing import closed
from wfsa.grammar.json_schema.document import Document, segment
from wfsa.grammar.json_schema.finite import Key, is_whole, json_key
from wfsa.grammar.json_schema.formats import format_language, wide_language
from wfsa.grammar.json_schema.keywords import UNEVALUATED, Found, read_keywords, shown
from wfsa.grammar.json_schema.shape import (
    ARRAY,
    BOOLEAN,
    FRACTION,
    INTEGER,
    NOT_SEEN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Compound,
    Handle,
    KeyClass,
    Seen,
    Shape,
    Tracks,
    complement,
    intersect,
    is_within,
    item_of,
    path_of,
    property_of,
    unseen,
)
from wfsa.grammar.json_schema.spelling import contains_text, pattern_language
from wfsa.grammar.json_schema.widening import CAUGHT

MAX_ALTERNATIVES = 8192
MAX_COMPOUNDS = 20000
MAX_STEPS = 1_000_000  # properties, items and values that intersections look at: a second or two
MAX_SUBSETS = 6  # branches of an anyOf whose subsets are told apart for unevaluated...
DEPTH = 3  # levels down to which two alternatives are looked at to see that they exclude each other


class _Open(SchemaError):
    """A schema was met again while it was being read."""


class Alternatives:
    """Reads the schemas of one document."""

    __slots__ = (
        "_any", "_closes", "_compounds", "_described", "_directs", "_empty", "_open", "_read", "_steps", "_unknown",
        "_value_keys", "document", "why",
    )  # fmt: skip

    def __init__(self, document: Document) -> None:
        self.document = document
        self.why = ("", "$")  # the last reason why something is empty, and where
        self._any = [Shape("$")]
        self._steps = 0  # of intersections
        self._value_keys: dict[int, tuple[Any, frozenset[Key]]] = {}
        # (id of a schema or compound, is noted what it evaluates) -> (it, its alternatives)
        self._read: dict[tuple[int, Tracks], tuple[Any, list[Shape]]] = {}
        self._closes = document.options != document.options.as_written()
        self._described: dict[int, tuple[Any, list[Shape]]] = {}
        self._open: set[tuple[int, Tracks]] = set()  # those whose alternatives are being read
        self._compounds: dict[tuple[str, frozenset[int]], Handle] = {}
        # (id of a child, levels looked at) -> (it, is it seen to be empty); not what met a schema that was being read
        self._empty: dict[tuple[int, int], tuple[Handle, bool]] = {}
        self._unknown = 0  # how often one was met
        self._directs: dict[int, tuple[Any, Handle]] = {}  # id of a reference -> (it, what it leads to)

    def alternatives(self, schema: Any, path: str, tracks: Tracks = Tracks.NONE) -> list[Shape]:
        """The shapes whose union a schema is; empty if no value is left.  `tracks`: they note what was evaluated."""
        if schema is True:
            return self._any
        if schema is False:
            self.why = "the schema is false", path
            return []
        key = id(schema), tracks
        got = self._read.get(key)
        if got is not None:
            return got[1]
        if key in self._open:
            raise _Open(f"the references form a loop without content at {path}")
        check()
        shape, found = read_keywords(schema, path, self.document, tracks)
        out = [shape]
        if found.ref is not None or found.parts is not None:
            self._open.add(key)
            try:
                if found.ref is not None:
                    out = self._kept(partial(self._also_referred, found, path), out, "$ref", path, found.tracks)
                if found.parts is not None:
                    out = self._applied(out, found, schema, path)
            finally:
                self._open.discard(key)
        if found.tracks and not tracks:
            out = [unseen(s) for s in out]
        self._read[key] = schema, out
        return out

    def _also_referred(self, found: Found, path: str, out: list[Shape]) -> list[Shape]:
        assert found.ref is not None
        return self._meet(out, self._alternatives_of(*self._target(found.ref, path), found.tracks), path)

    def _alternatives_of(self, target: Any, path: str, tracks: Tracks) -> list[Shape]:
        if not isinstance(target, (dict, bool)):
            raise SchemaError(f"a reference leads to something that is no schema at {path}")
        return self.alternatives(target, path, tracks)

    def _applied(self, out: list[Shape], found: Found, schema: dict[str, Any], path: str) -> list[Shape]:
        """What the applicators of one schema object leave of `out`."""
        parts = found.parts
        assert parts is not None
        if "$dynamicRef" in parts:

            def referred(shapes: list[Shape]) -> list[Shape]:
                target = self.document.dynamic(parts["$dynamicRef"], path)
                return self._meet(shapes, self._alternatives_of(*target, found.tracks), path)

            out = self._kept(referred, out, "$dynamicRef", path, found.tracks)
        for keyword, apply in self._applicators(parts, schema, path, found.tracks):
            out = self._kept(apply, out, keyword, path, found.tracks)
        for keyword in UNEVALUATED:
            if keyword in parts:
                apply = partial(self._all_evaluated, keyword, parts[keyword], path)
                out = self._kept(apply, out, keyword, path, found.tracks)
        return out

    def _applicators(
        self, parts: dict[str, Any], schema: dict[str, Any], path: str, tracks: Tracks
    ) -> Iterator[tuple[str, Callable[[list[Shape]], list[Shape]]]]:
        """(keyword, what it leaves of some shapes), in order."""
        for i, branch in enumerate(parts.get("allOf", ())):
            yield "allOf", partial(self._also, branch, f"{path}.allOf[{i}]", tracks)
        if "anyOf" in parts:
            yield "anyOf", lambda out: self._meet(out, self._union(parts["anyOf"], path, tracks), path)
        if "oneOf" in parts:
            yield "oneOf", lambda out: self._meet(out, self._one_of(parts["oneOf"], path, tracks), path)
        if "not" in parts:  # whatever fails has evaluated nothing
            yield "not", lambda out: self._minus(out, self.alternatives(parts["not"], path + ".not"), path)
        if "if" in parts:
            yield "if", partial(self._conditional, parts["if"], schema, path, tracks)
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, asked in parts.get(keyword, {}).items():
                where = f"{path}.{keyword}{segment(name)}"
                yield keyword, partial(self._dependent, name, asked, where, path, tracks)

    def _also(self, branch: Any, where: str, tracks: Tracks, out: list[Shape]) -> list[Shape]:
        return self._meet(out, self._branch(branch, where, tracks), where.rpartition(".allOf[")[0])

    def _kept(
        self, apply: Callable[[list[Shape]], list[Shape]], shapes: list[Shape], keyword: str, path: str, tracks: Tracks
    ) -> list[Shape]:
        """What a keyword leaves of `shapes`: all, if it cannot be enforced and the caller is lenient."""
        try:
            return apply(shapes)
        except CAUGHT as err:
            if not self.document.widenings.allowed:
                raise
            self.document.widenings.add(path, keyword, err)
        all_seen = {"seen": Seen(all_names=True, all_items=True)} if tracks else {}
        return [shape.changed(loose=True, **all_seen) for shape in shapes]

    def _conditional(
        self, asked: Any, schema: dict[str, Any], path: str, tracks: Tracks, out: list[Shape]
    ) -> list[Shape]:
        condition = self.alternatives(asked, path + ".if", tracks)
        then = self._meet(condition, self.alternatives(schema.get("then", True), path + ".then", tracks), path)
        other = self._minus(self.alternatives(schema.get("else", True), path + ".else", tracks), condition, path)
        return self._meet(out, [*then, *other], path)

    def _dependent(
        self, name: str, asked: Any, where: str, path: str, tracks: Tracks, out: list[Shape]
    ) -> list[Shape]:
        without = Shape(where, properties={name: (False, where)})
        there = Shape(where, mask=OBJECT, required=(name,))
        if isinstance(asked, list):
            some = [there.changed(required=tuple(dict.fromkeys((name, *asked))))]
        else:
            some = self._meet([there], self.alternatives(asked, where, tracks), where)
        return self._meet(out, [without, *some], path)

    def _all_evaluated(self, keyword: str, asked: Any, path: str, out: list[Shape]) -> list[Shape]:
        return [self._evaluated(s, keyword, (asked, f"{path}.{keyword}")) for s in out]

    def _evaluated(self, shape: Shape, keyword: str, handle: Handle) -> Shape:
        """`handle` holds for what the keywords of `shape` have left."""
        seen = shape.seen
        if keyword == "unevaluatedProperties":
            if seen.all_names:
                return shape
            others = KeyClass(names=seen.names, patterns=seen.patterns)
            return shape.changed(universals=(*shape.universals, (others, handle)), seen=seen._replace(all_names=True))
        if seen.all_items:
            return shape
        rest = handle
        for contained in seen.contained:
            rest = self._compound("or", (rest, contained))
        n = max(seen.items, len(shape.prefix))
        prefix = [item_of(shape, i) for i in range(n)]
        prefix[seen.items :] = [self.conjoin(item, rest) for item in prefix[seen.items :]]
        return shape.changed(
            prefix=tuple(prefix), rest=self.conjoin(shape.rest, rest), seen=seen._replace(all_items=True)
        )

    def _target(self, ref: str, path: str) -> tuple[Any, str]:
        """What a reference leads to, through all schemas that are nothing but references themselves."""
        seen: set[int] = set()
        while True:
            target, path = self.document.resolve(ref, path)
            if not isinstance(target, dict) or len(target) != 1 or not isinstance(target.get("$ref"), str):
                return target, path
            if id(target) in seen:
                raise SchemaError(f"the references form a loop without content at {path}")
            seen.add(id(target))
            ref = target["$ref"]

    def _branch(self, branch: Any, where: str, tracks: Tracks) -> list[Shape]:
        if not isinstance(branch, (dict, bool)):
            raise SchemaError(f"a schema must be an object or a boolean, not {shown(branch)} at {where}")
        return self.alternatives(branch, where, tracks)

    def _union(self, branches: list[Any], path: str, tracks: Tracks) -> list[Shape]:
        read = [self._branch(branch, f"{path}.anyOf[{i}]", tracks) for i, branch in enumerate(branches)]
        union = {id(shape): shape for shapes in read for shape in shapes}
        if tracks is Tracks.ALL and any(shape.seen is not NOT_SEEN for shape in union.values()):
            # What satisfies several branches has been evaluated by all of them.
            if len(read) > MAX_SUBSETS:
                raise LimitError(f"more than {MAX_SUBSETS} branches beside unevaluated...; use fewer at {path}.anyOf")
            for n in range(2, len(read) + 1):
                for chosen in combinations(read, n):
                    both = chosen[0]
                    for other in chosen[1:]:
                        both = self._meet(both, other, path)
                    union.update((id(shape), shape) for shape in both)
            return list(union.values())
        for shape in union.values():
            if shape.free:
                return [shape]
        return list(union.values())

    def _one_of(self, branches: list[Any], path: str, tracks: Tracks) -> list[Shape]:
        read = [self._branch(branch, f"{path}.oneOf[{i}]", tracks) for i, branch in enumerate(branches)]
        out: list[Shape] = []
        for i, shapes in enumerate(read):
            for shape in shapes:
                rest = [shape]
                for j, others in enumerate(read):
                    if i != j and rest:
                        rest = self._minus(rest, others, f"{path}.oneOf[{i}]")
                out += rest
        return out

    def _meet(self, left: list[Shape], right: list[Shape], path: str) -> list[Shape]:
        """The intersection of two unions."""
        if len(left) == 1 and left[0].free and left[0].seen is NOT_SEEN:
            return right
        if len(right) == 1 and right[0].free and right[0].seen is NOT_SEEN:
            return left
        if len(left) * len(right) > MAX_ALTERNATIVES:
            raise LimitError(
                f"{len(left) * len(right)} combinations of alternatives, the limit is {MAX_ALTERNATIVES}; use fewer "
                f"alternatives side by side at {path}"
            )
        out: list[Shape] = []
        if len(left) > 1 and len(right) > 1:
            out, left, right = self._absorbed(left, right)
        for a in left:
            for b in right:
                both = a if a is b else self._intersection(a, b)
                if both is not None and not (len(left) > 1 and self._is_empty(both, 0)):
                    out.append(both)
        if left and right and not out:
            self.why = "the alternatives and what stands beside them exclude each other", path
        return out

    def _absorbed(self, left: list[Shape], right: list[Shape]) -> tuple[list[Shape], list[Shape], list[Shape]]:
        """The shapes of either union that lie within one of the other, and what is left of both.

        They are part of the intersection whole, and the rest of it lies between those that are left: what else they
        would meet gives parts of them.  Complements of alike shapes have most of their alternatives in common, and
        their product would multiply with each.
        """
        self._spend(len(left) * len(right), left[0].path)
        inner = [a for a in left if any(is_within(a, b) for b in right)]
        done = {*map(id, inner)}
        inner_right = [b for b in right if id(b) not in done and any(is_within(b, a) for a in left)]
        taken = done | {*map(id, inner_right)}
        # Of two that lie within each other one is enough.
        whole = inner + [b for b in inner_right if not any(is_within(b, a) for a in inner)]
        return whole, [a for a in left if id(a) not in taken], [b for b in right if id(b) not in taken]

    def _greatest(self, shapes: list[Shape]) -> list[Shape]:
        """Those that do not lie within another one."""
        if len(shapes) < 3:
            return shapes
        out: list[Shape] = []
        for s in shapes:
            self._spend(2 * len(out), s.path)
            if not any(is_within(s, other) for other in out):
                out = [other for other in out if not is_within(other, s)]
                out.append(s)
        return out

    def _minus(self, left: list[Shape], right: list[Shape], path: str) -> list[Shape]:
        """What is in `left` and not in `right`."""
        for shape in right:
            touched = [s for s in left if self._overlap(s, shape)]
            if not touched:
                continue
            ids = {*map(id, touched)}
            kept = [s for s in left if id(s) not in ids]
            if shape.loose:  # what would be left is too little
                why = "a set that is not enforced exactly is not excluded here"
                self.document.widenings.add(path, "", why)
                left = kept + [s.changed(loose=True) for s in touched]
                continue
            values = None
            if shape.values is not None:
                values = [v for v in shape.values if self.accepts(v, shape, wide=True)]
            for union in complement(shape, values, self.negate):
                touched = self._meet(touched, union, path)
                touched = self._greatest([s for s in touched if not self._is_empty(s, 0)])
            left = kept + touched
        return left

    def _intersection(self, a: Shape, b: Shape) -> Shape | None:
        if not a.mask & b.mask:
            return None
        steps = 2 + len(a.properties) + len(b.properties) + len(a.prefix) + len(b.prefix)
        if a.values is not None and b.values is not None:
            steps += len(a.values) + len(b.values)
        self._spend(steps, a.path)
        return intersect(a, b, self.conjoin)

    def _spend(self, steps: int, path: str) -> None:
        before = self._steps
        self._steps = now = before + steps
        if now >> 12 != before >> 12:  # now and then
            if now > MAX_STEPS:
                what = f"combining alternatives takes more than {MAX_STEPS} steps"
                raise LimitError(f"{what}; use fewer of them side by side or nested at {path}")
            check()

    def _overlap(self, a: Shape, b: Shape, depth: int = DEPTH) -> bool:
        """Whether two shapes may have a value in common."""
        if a is b:
            return not self._is_empty(a, depth)
        both = self._intersection(a, b)
        return both is not None and not self._is_empty(both, depth)

    def _is_empty(self, s: Shape, depth: int) -> bool:
        """Whether a shape is seen to have no value; children are looked at `depth` levels down."""
        if s.values is not None:
            return not any(self._might_accept(v, s, depth) for v in s.values)
        mask = s.mask
        if mask & (NULL | BOOLEAN):
            return False
        if mask & NUMBER and s.low is not None and s.high is not None:
            if s.low > s.high or (s.low == s.high and (s.low_open or s.high_open)):
                mask &= ~NUMBER
        if mask & STRING:
            short = s.max_length is not None and s.min_length > s.max_length
            opposed = any(p in s.not_patterns for p in s.patterns) or any(f in s.not_formats for f in s.formats)
            if short or opposed:
                mask &= ~STRING
        if mask & ARRAY and s.max_items is not None and s.min_items > s.max_items:
            mask &= ~ARRAY
        if mask & ARRAY:
            if any(self._nothing(item_of(s, i), depth - 1) for i in range(min(s.min_items, len(s.prefix) + 1))):
                mask &= ~ARRAY
        if mask & OBJECT:
            most = s.max_properties
            if most is not None and max(s.min_properties, len(s.required)) > most:
                mask &= ~OBJECT
            if any(self._nothing(property_of(s, name), depth - 1) for name in s.required):
                mask &= ~OBJECT
        return not mask

    def _might_accept(self, value: Any, shape: Shape, depth: int) -> bool:
        if isinstance(value, (list, dict)) and not depth:
            return True
        return self.accepts(value, shape, wide=True)

    def _nothing(self, handle: Handle, depth: int) -> bool:
        if isinstance(handle, tuple) and isinstance(handle[0], bool):
            return not handle[0]
        if depth < 0:
            return False
        number = _number(handle)
        known = self._empty.get((number, depth))
        if known is not None:
            return known[1]
        if (number, Tracks.NONE) in self._open:
            self._unknown += 1  # being read
            return False
        before = self._unknown
        try:
            out = all(self._is_empty(s, depth) for s in self.of_handle(handle))
        except (LimitError, _Open):
            if self._steps > MAX_STEPS:
                raise
            self._unknown += 1
            return False
        if out or self._unknown == before:
            self._empty[number, depth] = handle, out
        return out

    # ---- handles -----------------------------------------------------------------------------------------------------

    def _compound(self, kind: Literal["and", "or", "not"], handles: tuple[Handle, ...]) -> Handle:
        """The interned compound; parts of the same kind are taken apart, and what excludes another part decides it."""
        parts: dict[int, Handle] = {}
        for h in map(self._direct, handles):
            inner = h.parts if kind != "not" and isinstance(h, Compound) and h.kind == kind else (h,)
            parts.update((_number(x), x) for x in inner)
        key = kind, frozenset(parts)
        got = self._compounds.get(key)
        if got is None:
            if len(self._compounds) >= MAX_COMPOUNDS:
                raise LimitError(
                    f"more than {MAX_COMPOUNDS} combinations of schemas; combine fewer at {path_of(handles[0])}"
                )
            got = Compound(kind, tuple(parts.values()))
            if kind != "not" and any(_number(self.negate(x)) in parts for x in got.parts if _is_not(x)):
                got = kind == "or", path_of(handles[0])
            self._compounds[key] = got
        return got

    def _direct(self, handle: Handle) -> Handle:
        """What a child that is nothing but a reference leads to, so that all who refer to it are one."""
        if not isinstance(handle, tuple) or not isinstance(handle[0], dict) or len(handle[0]) != 1:
            return handle
        ref = handle[0].get("$ref")
        if not isinstance(ref, str):
            return handle
        got = self._directs.get(id(handle[0]))
        if got is None:
            try:
                target = self._target(ref, handle[1])
            except SchemaError:  # told where the child is read, if it is
                target = handle
            got = self._directs[id(handle[0])] = handle[0], target
        return got[1]

    def conjoin(self, a: Handle, b: Handle) -> Handle:
        if a is not b:
            a, b = self._direct(a), self._direct(b)
        for x, y in ((a, b), (b, a)):
            if isinstance(x, tuple):
                if x[0] is True:
                    return y
                if x[0] is False:
                    return x
        if a is b or (isinstance(a, tuple) and isinstance(b, tuple) and a[0] is b[0]):
            return a
        return self._compound("and", (a, b))

    def negate(self, handle: Handle) -> Handle:
        if isinstance(handle, tuple) and isinstance(handle[0], bool):
            return not handle[0], handle[1]
        if isinstance(handle, Compound) and handle.kind == "not":
            return handle.parts[0]
        return self._compound("not", (handle,))

    def of_handle(self, handle: Handle, tracks: Tracks = Tracks.NONE) -> list[Shape]:
        """The alternatives of a child."""
        if isinstance(handle, tuple):
            return self.alternatives(*handle, tracks)
        key = id(handle), tracks
        got = self._read.get(key)
        if got is not None:
            return got[1]
        if key in self._open:
            raise _Open(f"the references form a loop without content at {path_of(handle)}")
        self._open.add(key)
        try:
            out = self._any
            if handle.kind == "and":
                for part in handle.parts:
                    try:
                        out = self._meet(out, self.of_handle(part, tracks), path_of(part))
                    except CAUGHT as err:
                        self.document.widenings.add(path_of(part), "", err)
                        out = [shape.changed(loose=True) for shape in out]
            elif handle.kind == "or":
                out = list({id(s): s for part in handle.parts for s in self.of_handle(part, tracks)}.values())
            else:
                out = self._minus(out, self.of_handle(handle.parts[0]), path_of(handle))
        finally:
            self._open.discard(key)
        self._read[key] = handle, out
        return out

    def described(self, handle: Handle) -> list[Shape]:
        """The alternatives of what is written for a child: those of `of_handle`, closed as the options say."""
        if not self._closes:
            return self.of_handle(handle)
        key = _number(handle)
        got = self._described.get(key)
        if got is None:
            shapes = [closed(s, self.document.options) for s in self.of_handle(handle, Tracks.EACH)]
            got = self._described[key] = handle, shapes
        return got[1]

    # ---- values ------------------------------------------------------------------------------------------------------

    # Some formats are known from two sides only (:mod:`.formats`): what has them, and, `wide`, what may have them.
    # Who negates the answer asks for the other one.

    # `sure` asks in the same way for what is certainly in a set that is loose, which is nothing.

    def accepts(self, value: Any, shape: Shape, wide: bool = False, sure: bool = False) -> bool:
        """Whether a value satisfies the conditions of a shape, `values` aside."""
        mask = shape.mask
        if sure and shape.loose:
            return False
        if isinstance(value, str):
            n = len(value)
            if shape.excluded and json_key(value) in self._keys(shape.excluded):
                return False
            if not mask & STRING or n < shape.min_length or (shape.max_length is not None and n > shape.max_length):
                return False
            if not (shape.patterns or shape.not_patterns or shape.formats or shape.not_formats):
                return True
            try:
                inner, outer = (wide_language, format_language) if wide else (format_language, wide_language)
                return (
                    all(contains_text(pattern_language(p), value) for p in shape.patterns)
                    and not any(contains_text(pattern_language(p), value) for p in shape.not_patterns)
                    and all(contains_text(inner(f), value) for f in shape.formats)
                    and not any(contains_text(outer(f), value) for f in shape.not_formats)
                )
            except UnicodeEncodeError:
                return False
        if value is None:
            return bool(mask & NULL)
        if isinstance(value, bool):
            return bool(mask & BOOLEAN)
        if isinstance(value, (int, float, Decimal)):
            kind = INTEGER if is_whole(value) else FRACTION
            if wide and self.document.wholes != "value":
                kind = NUMBER  # in draft 4, 1.0 is no integer
            if not mask & kind:
                return False
            if shape.excluded and json_key(value) in self._keys(shape.excluded):
                return False
            number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
            if not all(_divides(m, number) for m in shape.multiples):
                return False
            if any(_divides(m, number) for m in shape.not_multiples):
                return False
            low, high = shape.low, shape.high
            if low is not None and (number < low or (shape.low_open and number == low)):
                return False
            return high is None or not (number > high or (shape.high_open and number == high))
        if isinstance(value, list):
            if not mask & ARRAY or len(value) < shape.min_items:
                return False
            if shape.max_items is not None and len(value) > shape.max_items:
                return False
            if shape.unique or shape.repeated:
                if (len({json_key(v) for v in value}) < len(value)) != shape.repeated:
                    return False
            for c in shape.contains:
                counted = value[c.start :]
                if sum(self.admits(c.handle, v, wide, sure) for v in counted) < c.low:
                    return False
                if c.high is not None and sum(self.admits(c.handle, v, not wide, not sure) for v in counted) > c.high:
                    return False
            return all(self.admits(item_of(shape, i), v, wide, sure) for i, v in enumerate(value))
        if not mask & OBJECT or any(name not in value for name in shape.required) or len(value) < shape.min_properties:
            return False
        if shape.max_properties is not None and len(value) > shape.max_properties:
            return False
        for keys, handle in shape.existentials:
            if not any(
                self.in_class(name, keys, wide, sure) and self.admits(handle, v, wide, sure)
                for name, v in value.items()
            ):
                return False
        for keys, handle in shape.universals:
            members = [v for name, v in value.items() if self.in_class(name, keys, not wide, not sure)]
            if not all(self.admits(handle, v, wide, sure) for v in members):
                return False
        return all(self.admits(property_of(shape, name), v, wide, sure) for name, v in value.items())

    def _keys(self, values: Any) -> frozenset[Key]:
        """The keys of the values of a shape; the list is kept alive, so that its identity stays its own."""
        got = self._value_keys.get(id(values))
        if got is None:
            got = self._value_keys[id(values)] = values, frozenset(map(json_key, values))
        return got[1]

    def in_class(self, name: str, keys: KeyClass, wide: bool = False, sure: bool = False) -> bool:
        """Whether a property's name is in a class."""
        if name in keys.names:
            return False
        try:
            if any(contains_text(pattern_language(p), name) for p in keys.patterns):
                return False
            if keys.pattern is not None and not contains_text(pattern_language(keys.pattern), name):
                return False
        except UnicodeEncodeError:  # a lone surrogate, which no document spells
            return False
        return keys.key is None or self.admits(keys.key, name, wide, sure)

    def is_loose(self, handle: Handle) -> bool:
        """Whether a condition of a child was dropped."""
        return any(shape.loose for shape in self.of_handle(handle))

    def admits(self, handle: Handle, value: Any, wide: bool = False, sure: bool = False) -> bool:
        for shape in self.of_handle(handle):
            if shape.free:
                return True
            if shape.values is not None and json_key(value) not in self._keys(shape.values):
                continue
            if self.accepts(value, shape, wide, sure):
                return True
        return False


def _number(handle: Handle) -> int:
    """What tells children apart: which schema, wherever it is met."""
    return id(handle[0] if isinstance(handle, tuple) else handle)


def _is_not(handle: Handle) -> bool:
    return isinstance(handle, Compound) and handle.kind == "not"


def _divides(m: Decimal, number: Decimal) -> bool:
    with localcontext() as context:
        context.prec = 400
        try:
            return number % m == 0
        except InvalidOperation:
            return False
