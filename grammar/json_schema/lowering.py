"""A JSON Schema in, a grammar of its documents out.

    document      references                       }
    keywords      one schema object -> `Shape`     }  shapes: what the values are
    shape         intersection                     }
    alternatives  $ref, anyOf                      }
    lexemes       terminals                        }
    productions   rules                            }  grammar: how they are written

This file goes from the one to the other: a schema is a union of shapes; all scalars of all of them become one
terminal, and the objects and the arrays of each become a nonterminal.

Recursion.  A child is lowered before its parent's rules are made, so equal objects are one nonterminal by content, and
a child that nothing satisfies is known in time.  A shape that is met again while it is open gets a nonterminal in
advance; so does one that lies `MAX_DEPTH` levels below the first, to be lowered from a queue afterwards, so that a
chain of thousands of references costs no stack.  Only then a nonterminal can turn out to derive nothing, and `_trim`
looks for that.

Memoised: schemas and conjunctions by identity, and every construction by content.
Rejected: a work list alone (parents before children: no merging by content, and emptiness is known only at the end).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wfsa.errors import LimitError, SchemaError
from wfsa.grammar.ir import MAX_UNITS, Grammar
from wfsa.grammar.json_schema.alternatives import Alternatives
from wfsa.grammar.json_schema.document import Document, draft_of
from wfsa.grammar.json_schema.finite import scalar_spellings
from wfsa.grammar.json_schema.intervals import decimals, integers, whole_bounds
from wfsa.grammar.json_schema.lexemes import lexemes, type_names
from wfsa.grammar.json_schema.options import SchemaOptions
from wfsa.grammar.json_schema.productions import Member, Productions
from wfsa.grammar.json_schema.report import SchemaReport
from wfsa.grammar.json_schema.shape import (
    ARRAY,
    BOOLEAN,
    FRACTION,
    NULL,
    NUMBER,
    OBJECT,
    OPEN,
    SCALARS,
    STRING,
    UNSEEN,
    Handle,
    Shape,
)
from wfsa.grammar.json_schema.sources import schema_of
from wfsa.grammar.json_schema.spelling import string_language
from wfsa.grammar.regular import NOTHING, Literal, Regular, alt

MAX_DEPTH = 40  # levels of objects and arrays that are lowered on Python's stack
MAX_NESTING = 1000  # segments of a path


@dataclass(frozen=True, slots=True)
class LoweredSchema:
    """The grammar of a schema's documents, and what of the schema it enforces."""

    grammar: Grammar
    report: SchemaReport


def read_json_schema(schema: Any, options: SchemaOptions | None = None) -> LoweredSchema:
    """Lower a schema: a dict, a bool, JSON text, or a pydantic model or dataclass.

    Raises SchemaError (malformed, unsupported, satisfied by nothing; ends in ``at $.path``) or LimitError.
    """
    options = options or SchemaOptions()
    try:
        if not isinstance(schema, (dict, bool)):
            schema = schema_of(schema)
        lowering = _Lowering(schema, options)
        grammar = lowering.run()
    except RecursionError:
        raise LimitError(
            "the schema nests references, anyOf or constants deeper than Python's stack; flatten it at $"
        ) from None
    return LoweredSchema(grammar, SchemaReport(schema, options, lowering.document.draft))


class _Lowering:
    __slots__ = ("_depth", "_forward", "_queue", "_symbols", "document", "lexemes", "out", "read")

    def __init__(self, schema: Any, options: SchemaOptions) -> None:
        self.document = Document(schema, draft_of(schema))
        self.read = Alternatives(self.document)
        self.lexemes = lexemes(options.whitespace)
        self.out = Productions(self.lexemes)
        self._symbols: dict[int, int | None] = {}  # id of a schema -> its symbol
        self._depth = 0
        self._forward = False  # was a nonterminal used before its rules were known
        self._queue: list[tuple[Shape, int]] = []

    def run(self) -> Grammar:
        root = self.document.root
        out = self.out
        start = self._symbol(root, "$")
        while self._queue:
            shape, bit = self._queue.pop()
            self._members(shape) if bit == OBJECT else self._items(shape)
        if start is not None and self._forward:
            start = self._trim(start)
        if start is None:
            why, path = self.read.why
            raise SchemaError(f"no document satisfies the schema: {why} at {path}")
        if start >= 0:
            scalar, start = start, out.nonterminal("document", "$")
            out.rules.append((~start, (scalar,)))
        return out.build(start)

    # ---- from alternatives to symbols ----------------------------------------------------------------------------

    def _symbol(self, schema: Any, path: str) -> int | None:
        """The symbol of a schema; None if it is empty."""
        key = id(schema)
        try:
            return self._symbols[key]
        except KeyError:
            pass
        got = self._symbols[key] = self._lower(self.read.alternatives(schema, path), path)
        return got

    def _child(self, handle: Handle) -> int | None:
        if isinstance(handle, tuple):
            return self._symbol(*handle)
        if handle.symbol == UNSEEN:
            handle.symbol = self._lower(self.read.of_handle(handle), handle.sites[0][1])
        return handle.symbol

    def _lower(self, shapes: list[Shape], path: str) -> int | None:
        """The symbol of a union of shapes; None if it is empty."""
        if len(shapes) == 1:
            shape = shapes[0]
            if len(shape.__dict__) == 3 and not shape.mask & ~SCALARS:  # path, free, mask: the usual case
                return self._plain(shape.mask, path)
        plain = 0  # scalar types that are taken whole
        bounded: dict[tuple[Any, ...], Shape] = {}
        spellings: dict[bytes, None] = {}
        parts: dict[int | None, None] = {}
        for shape in shapes:
            if shape.free:
                return self._anything()
            if shape.values is not None:
                self._constants(shape, spellings, parts)
                continue
            mask = shape.mask
            if mask & SCALARS:
                plain |= mask & (NULL | BOOLEAN)
                if mask & NUMBER:
                    if shape.low is None and shape.high is None:
                        plain |= mask & NUMBER
                    else:
                        whole = not mask & FRACTION
                        bounded["n", whole, shape.low, shape.low_open, shape.high, shape.high_open] = shape
                if mask & STRING:
                    if _is_counted(shape):
                        parts[self._counted(shape)] = None
                    elif shape.min_length or shape.max_length is not None or shape.patterns or shape.formats:
                        bounded["s", shape.min_length, shape.max_length, shape.patterns, shape.formats] = shape
                    else:
                        plain |= STRING
            if mask & ARRAY:
                parts[self._array(shape)] = None
            if mask & OBJECT:
                parts[self._object(shape)] = None
        parts.pop(None, None)
        if plain or bounded or spellings:
            scalar = self._scalar(plain, bounded, tuple(spellings), path)
            if scalar is not None:
                parts = {scalar: None, **parts}
        if not parts:
            return None
        return self.out.union(tuple(parts), path)  # type: ignore[arg-type]  # None was taken out

    def _counted(self, shape: Shape) -> int | None:
        """The terminal of strings bounded by nothing but their length."""
        least, most = shape.min_length, shape.max_length
        if most is not None and least > most:
            self.read.why = "no string has the length and matches the pattern or format", shape.path
            return None
        if most is not None and most >= MAX_UNITS:
            most = None
        return self.out.counted_string(min(least, MAX_UNITS - 1), most, shape.path)

    def _anything(self) -> int:
        return self.out.anything(self._plain(SCALARS, ""))

    def _plain(self, mask: int, path: str) -> int:
        got = self.out.made(mask)
        if got is None:
            got = self.out.scalar(mask, type_names(mask), self.lexemes.plain(mask), path)
        return got

    def _scalar(
        self, plain: int, bounded: dict[tuple[Any, ...], Shape], spellings: tuple[bytes, ...], path: str
    ) -> int | None:
        """The one terminal of all scalars of a union."""
        if not bounded:
            if not spellings:
                return self._plain(plain, path)
            if not plain:
                return self.out.one_of(spellings, path)
        key = (plain, tuple(bounded), spellings)
        got = self.out.made(key)
        if got is not None:
            return got
        name = "one of several values"
        pattern = self.lexemes.cached(key) if not spellings else None
        if len(bounded) == 1 and not plain and not spellings:
            ((kind, *_), shape) = next(iter(bounded.items()))
            name = "number in bounds" if kind == "n" else _string_name(shape)
        if pattern is None:
            trees = [tree for k, s in bounded.items() if (tree := self._bounded(k, s)) is not None]
            if plain:
                trees.append(self.lexemes.plain_body(plain))
            if not trees and not spellings:
                return None
            pattern = self.lexemes.glued(alt(*trees, *map(Literal, spellings)))
            if not spellings:
                self.lexemes.keep(key, pattern)
        return self.out.scalar(key, name, pattern, path)

    def _bounded(self, key: tuple[Any, ...], shape: Shape) -> Regular | None:
        """The spellings of the numbers or strings within a shape's bounds."""
        tree: Regular | None
        if key[0] == "s":
            tree = string_language(*key[1:])
            if tree is None:
                self.read.why = "no string has the length and matches the pattern or format", shape.path
            return tree
        _, whole, low, low_open, high, high_open = key
        if whole:
            tree = integers(*whole_bounds(low, low_open, high, high_open))
        else:
            tree = decimals(low, low_open, high, high_open)
        if tree == NOTHING:
            kind = "integer" if whole else "number"
            least = "" if low is None else f" {'above' if low_open else 'from'} {low}"
            most = "" if high is None else f" {'below' if high_open else 'up to'} {high}"
            self.read.why = f"there is no {kind}{least}{most}", shape.path
            return None
        return tree

    # ---- constants -----------------------------------------------------------------------------------------------

    def _constants(self, shape: Shape, spellings: dict[bytes, None], parts: dict[int | None, None]) -> None:
        """Add the values of an enum that satisfy the keywords beside it."""
        assert shape.values is not None
        some = False
        for value in shape.values:
            if not self.read.accepts(value, shape):
                continue
            if isinstance(value, (dict, list)):
                symbol = self.out.constant(value, shape.path)
                some |= symbol is not None
                parts[symbol] = None
            else:
                for spelling in scalar_spellings(value):
                    spellings[spelling] = None
                    some = True
        if not some:
            self.read.why = "none of the values in enum or const satisfies the keywords beside it", shape.path

    # ---- objects and arrays --------------------------------------------------------------------------------------

    def _object(self, shape: Shape) -> int | None:
        """The symbol of a shape's objects; None if there are none."""
        got = shape.object_symbol
        if got != UNSEEN and got != OPEN:
            return got
        if got == OPEN or self._depth >= MAX_DEPTH:
            if got == UNSEEN:
                self._later(shape, OBJECT)
            self._forward = True
            got = shape.object_symbol = self.out.nonterminal("object", shape.path)
            return got
        shape.object_symbol = OPEN
        self._depth += 1
        got = shape.object_symbol = self._members(shape)
        self._depth -= 1
        return got

    def _array(self, shape: Shape) -> int | None:
        """The symbol of a shape's arrays; None if there are none."""
        got = shape.array_symbol
        if got != UNSEEN and got != OPEN:
            return got
        if got == OPEN or self._depth >= MAX_DEPTH:
            if got == UNSEEN:
                self._later(shape, ARRAY)
            self._forward = True
            got = shape.array_symbol = self.out.nonterminal("array", shape.path)
            return got
        shape.array_symbol = OPEN
        self._depth += 1
        got = shape.array_symbol = self._items(shape)
        self._depth -= 1
        return got

    def _later(self, shape: Shape, bit: int) -> None:
        """Lower a shape from the queue, with the stack empty."""
        path = shape.path
        if path.count(".") + path.count("[") > MAX_NESTING:
            raise LimitError(f"the schema nests deeper than {MAX_NESTING} levels; use $ref for its parts at {path}")
        self._queue.append((shape, bit))

    def _members(self, shape: Shape) -> int | None:
        """Make the rules of a shape's objects."""
        out, path, properties = self.out, shape.path, shape.properties
        required = shape.required
        members: list[Member] = []
        symbols, keys = self._symbols, out.keys
        for name, handle in properties.items():
            value = symbols.get(id(handle[0]), UNKNOWN) if isinstance(handle, tuple) else UNKNOWN
            if value is UNKNOWN:
                value = self._child(handle)
            if value is None:
                if name in required:
                    why, where = self.read.why
                    self.read.why = f"property {name!r} is required and nothing fits it: {why}", where
                    return None
                continue
            key = keys.get(name)
            if key is None:
                key = out.key(name, path)
                if key is None:
                    if name in required:
                        self.read.why = f"the required name {name!r} has no spelling in UTF-8", path
                        return None
                    continue
            members.append((key, value, name in required))  # type: ignore[arg-type]
        extra: tuple[int, int] | None = None
        others = [name for name in required if name not in properties]
        rest = shape.additional
        value = None if isinstance(rest, tuple) and rest[0] is False else self._child(rest)
        if value is None and others:
            self.read.why = f"property {others[0]!r} is required and additionalProperties admits nothing for it", path
            return None
        if value is not None:
            for name in dict.fromkeys(others):
                key = out.key(name, path)
                if key is None:
                    self.read.why = f"the required name {name!r} has no spelling in UTF-8", path
                    return None
                members.append((key, value, True))
            extra = out.other_key((*properties, *others), path), value
        forward = shape.object_symbol
        return out.object(tuple(members), extra, path, forward if forward is not None and forward < 0 else None)

    def _items(self, shape: Shape) -> int | None:
        """Make the rules of a shape's arrays."""
        low, high = shape.min_items, shape.max_items
        prefix: list[int] = []
        for i, handle in enumerate(shape.prefix):
            if high is not None and i >= high:
                break
            value = self._child(handle)
            if value is None:
                high = i
                break
            prefix.append(value)
        rest: int | None = None
        if high is None or high > len(prefix):
            rest = self._child(shape.rest)
            if rest is None:
                high = len(prefix)
        if high is not None and low > high:
            self.read.why = f"an array needs {low} items and can have {high}", shape.path
            return None
        while prefix and prefix[-1] == rest:
            prefix.pop()
        forward = shape.array_symbol
        return self.out.array(
            tuple(prefix), rest, low, high, shape.path, forward if forward is not None and forward < 0 else None
        )

    # ---- recursion -------------------------------------------------------------------------------------------------

    def _trim(self, start: int) -> int | None:
        """Drop the rules that derive nothing; None if `start` does."""
        rules = self.out.rules
        waiting = [0] * len(rules)  # symbols of a rule not known to derive something
        uses: list[list[int]] = [[] for _ in self.out.names]
        good = [False] * len(self.out.names)
        todo: list[int] = []
        for i, (lhs, rhs) in enumerate(rules):
            for symbol in rhs:
                if symbol < 0:
                    waiting[i] += 1
                    uses[~symbol].append(i)
            if not waiting[i] and not good[lhs]:
                good[lhs] = True
                todo.append(lhs)
        for number in todo:  # grows while it is walked
            for i in uses[number]:
                waiting[i] -= 1
                lhs = rules[i][0]
                if not waiting[i] and not good[lhs]:
                    good[lhs] = True
                    todo.append(lhs)
        if start < 0 and not good[~start]:
            if not self.read.why[0]:
                self.read.why = "it recurs without end", self.out.origins[~start]
            return None
        if not all(good):
            self.out.rules = [r for i, r in enumerate(rules) if not waiting[i]]
        return start


UNKNOWN = object()
FEW = 2  # at least so many characters are cheaper spelled out than counted


def _is_counted(shape: Shape) -> bool:
    """Whether a string is bounded by its length alone, and not by very little."""
    bounded = shape.max_length is not None or shape.min_length > FEW
    return bounded and not shape.patterns and not shape.formats


def _string_name(shape: Shape) -> str:
    """A string terminal, for messages."""
    if shape.formats:
        return f"string ({shape.formats[0]})"
    if shape.patterns:
        return f"string /{shape.patterns[0]}/"
    return "string of bounded length"
