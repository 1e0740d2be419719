"""From schemas to alternatives: references followed, ``anyOf`` distributed, conditions intersected.

Input: a schema of the document, or a handle to several at once.  Output: the shapes whose union it is (:mod:`.shape`).

    {type: object, properties: P, anyOf: [{required: [a]}, {required: [b]}]}    ->   P with a,   P with b

Only the schema itself is looked into, never its children, so recursion through children costs nothing here, and
recursion that meets no child is a loop without content: an error.  Everything is memoised by the identity of the
schema's dict, which the document keeps alive.

Intersections multiply, so both the product of two unions and the number of conjunctions have a limit.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from wfsa.errors import LimitError, SchemaError
from wfsa.grammar.json_schema.document import Document
from wfsa.grammar.json_schema.finite import is_whole, json_key
from wfsa.grammar.json_schema.formats import format_language
from wfsa.grammar.json_schema.keywords import read_keywords, shown
from wfsa.grammar.json_schema.shape import (
    ARRAY,
    BOOLEAN,
    FRACTION,
    INTEGER,
    NULL,
    OBJECT,
    STRING,
    Conjunction,
    Handle,
    Shape,
    intersect,
    item_of,
    property_of,
)
from wfsa.grammar.json_schema.spelling import contains_text, pattern_language

MAX_ALTERNATIVES = 4096
MAX_CONJUNCTIONS = 20000


class Alternatives:
    """Reads the schemas of one document."""

    __slots__ = ("_any", "_conjunctions", "_open", "_read", "document", "why")

    def __init__(self, document: Document) -> None:
        self.document = document
        self.why = ("", "$")  # the last reason why something is empty, and where
        self._any = [Shape("$")]
        self._read: dict[int, list[Shape]] = {}  # id of a schema or conjunction -> its alternatives
        self._open: set[int] = set()  # schemas whose alternatives are being read
        self._conjunctions: dict[frozenset[int], Conjunction] = {}

    def alternatives(self, schema: Any, path: str) -> list[Shape]:
        """The shapes whose union a schema is; empty if no value is left."""
        if schema is True:
            return self._any
        if schema is False:
            self.why = "the schema is false", path
            return []
        key = id(schema)
        got = self._read.get(key)
        if got is not None:
            return got
        if key in self._open:
            raise SchemaError(f"the references form a loop without content at {path}")
        shape, found = read_keywords(schema, path, self.document)
        out = [shape]
        if found.ref is not None or found.any_of is not None:
            self._open.add(key)
            if found.ref is not None:
                target, target_path = self._target(found.ref, path)
                if not isinstance(target, (dict, bool)):
                    raise SchemaError(f"the reference {found.ref!r} leads to something that is no schema at {path}")
                out = self._meet(out, self.alternatives(target, target_path), path)
            if found.any_of is not None:
                out = self._meet(out, self._union(found.any_of, path), path)
            self._open.discard(key)
        self._read[key] = out
        return out

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

    def _union(self, branches: list[Any], path: str) -> list[Shape]:
        union: dict[int, Shape] = {}
        for i, branch in enumerate(branches):
            where = f"{path}.anyOf[{i}]"
            if not isinstance(branch, (dict, bool)):
                raise SchemaError(f"a schema must be an object or a boolean, not {shown(branch)} at {where}")
            for shape in self.alternatives(branch, where):
                union[id(shape)] = shape
        for shape in union.values():
            if shape.free:
                return [shape]
        return list(union.values())

    def _meet(self, left: list[Shape], right: list[Shape], path: str) -> list[Shape]:
        """The intersection of two unions."""
        if len(left) == 1 and left[0].free:
            return right
        if len(right) == 1 and right[0].free:
            return left
        if len(left) * len(right) > MAX_ALTERNATIVES:
            raise LimitError(
                f"{len(left) * len(right)} combinations of alternatives, the limit is {MAX_ALTERNATIVES}; use fewer "
                f"alternatives side by side at {path}"
            )
        out: list[Shape] = []
        for a in left:
            for b in right:
                both = a if a is b else intersect(a, b, self._conjoin)
                if both is not None:
                    out.append(both)
        if left and right and not out:
            self.why = "the alternatives and what stands beside them exclude each other", path
        return out

    def _conjoin(self, a: Handle, b: Handle) -> Handle:
        if isinstance(a, tuple) and isinstance(b, tuple):
            if a[0] is b[0] or b[0] is True or a[0] is False:
                return a
            if a[0] is True or b[0] is False:
                return b
        sites = {id(s): (s, p) for h in (a, b) for s, p in (h.sites if isinstance(h, Conjunction) else (h,))}
        sites.pop(id(True), None)
        key = frozenset(sites)
        got = self._conjunctions.get(key)
        if got is None:
            if len(self._conjunctions) >= MAX_CONJUNCTIONS:
                path = next(iter(sites.values()))[1]
                raise LimitError(
                    f"more than {MAX_CONJUNCTIONS} combinations of schemas that hold at once; combine fewer at {path}"
                )
            got = self._conjunctions[key] = Conjunction(tuple(sites.values()))
        return got

    def of_handle(self, handle: Handle) -> list[Shape]:
        """The alternatives of a child."""
        if isinstance(handle, tuple):
            return self.alternatives(*handle)
        got = self._read.get(id(handle))
        if got is None:
            got = self._any
            for schema, path in handle.sites:
                got = self._meet(got, self.alternatives(schema, path), path)
            self._read[id(handle)] = got
        return got

    # ---- values ------------------------------------------------------------------------------------------------------

    def accepts(self, value: Any, shape: Shape) -> bool:
        """Whether a value satisfies the conditions of a shape, `values` aside."""
        mask = shape.mask
        if isinstance(value, str):
            n = len(value)
            if not mask & STRING or n < shape.min_length or (shape.max_length is not None and n > shape.max_length):
                return False
            try:
                return all(contains_text(pattern_language(p), value) for p in shape.patterns) and all(
                    contains_text(tree, value) for f in shape.formats if (tree := format_language(f)) is not None
                )
            except UnicodeEncodeError:
                return False
        if value is None:
            return bool(mask & NULL)
        if isinstance(value, bool):
            return bool(mask & BOOLEAN)
        if isinstance(value, (int, float, Decimal)):
            if not mask & (INTEGER if is_whole(value) else FRACTION):
                return False
            number = Decimal(repr(value)) if isinstance(value, float) else value
            low, high = shape.low, shape.high
            if low is not None and (number < low or (shape.low_open and number == low)):
                return False
            return high is None or not (number > high or (shape.high_open and number == high))
        if isinstance(value, list):
            if not mask & ARRAY or len(value) < shape.min_items:
                return False
            if shape.max_items is not None and len(value) > shape.max_items:
                return False
            return all(self._admits(item_of(shape, i), v) for i, v in enumerate(value))
        if not mask & OBJECT or any(name not in value for name in shape.required):
            return False
        return all(self._admits(property_of(shape, name), v) for name, v in value.items())

    def _admits(self, handle: Handle, value: Any) -> bool:
        for shape in self.of_handle(handle):
            if shape.free:
                return True
            if shape.values is not None and json_key(value) not in map(json_key, shape.values):
                continue
            if self.accepts(value, shape):
                return True
        return False
