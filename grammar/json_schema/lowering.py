"""A JSON Schema in, a grammar of its documents out.

    document      references                       }
    schema_object one schema object -> `Shape`     }  shapes: what the values are
    shape         intersection                     }
    alternatives  $ref, anyOf                      }
    truth         equal combinations of children   }
    memo          symbols made so far              }
    scalars       terminals                        }  grammar: how they are written
    objects       rules of objects                 }
    arrays        rules of arrays                  }
    productions   the rules themselves             }

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

from dataclasses import dataclass, replace
from typing import Any

from wfsa.errors import LimitError, SchemaError

from ..allowance import check
from ..boundary import Boundary
from ..ir import Grammar
from ..unproductive import trimmed
from .domains.handles import Handle, path_of
from .domains.shape import Shape
from .domains.types import ARRAY, OBJECT, SCALARS, type_of
from .explain.report import SchemaEntries, SchemaReport
from .options import SchemaOptions
from .read.document import Document, draft_of
from .read.misspelt import Slip
from .read.sources import SchemaSource, schema_of
from .widening import Widening
from .write.arrays import Arrays
from .write.indentation import indented
from .write.memo import Memo, Place
from .write.objects import Objects
from .write.relaxing import relaxed, without_names_in_doubt
from .write.scalars import Scalars, ScalarUnion

MAX_DEPTH = 40  # levels of objects and arrays that are lowered on Python's stack
MAX_NESTING = 1000  # segments of a path


_ONLY_TYPES = Shape("$")[3:]  # what follows the mask of a shape without other conditions


class NoDocument(SchemaError):
    """Nothing satisfies a schema."""


@dataclass(frozen=True, slots=True)
class LoweredSchema:
    """The grammar of a schema's documents, and what of the schema it enforces."""

    grammar: Grammar
    report: SchemaReport
    source: SchemaSource | None  # None: several schemas, or none
    slips: tuple[Slip, ...] = ()  # keywords that are probably misspelt
    widenings: tuple[Widening, ...] = ()  # conditions that were dropped


@Boundary(SchemaError)
def read_json_schema(
    schema: Any, options: SchemaOptions | None = None, too_large: frozenset[str] = frozenset(), *,
    embedded: bool = False, barred: frozenset[bytes] = frozenset(), objects_only: bool = False,
) -> LoweredSchema:  # fmt: skip
    """Lower a schema: a dict, a bool, JSON text, or a pydantic model or dataclass.

    `too_large` are paths whose terminals have turned out to be too large, to be widened under ``lenient``.
    `embedded`: for documents that are part of a larger text (:mod:`wfsa.grammar.inline`).  There ``uniqueItems`` is not
    enforced, which the report says.  `barred` are byte strings that no string in them is spelled with.
    `objects_only`: of the schema's values only the objects, which is what the arguments of a call are.
    Raises SchemaError (malformed, unsupported, satisfied by nothing; ends in ``at $.path``) or LimitError.
    """
    options = options or SchemaOptions()
    try:
        if not isinstance(schema, (dict, bool)):
            schema = schema_of(schema)
        if embedded and options.unique_items != "unchecked":
            options = replace(options, unique_items="unchecked")
        document = Document(schema, draft_of(schema, options.draft), options, too_large, embedded, barred)
        grammar = Lowering(document).run(schema, "$", objects_only)
    except RecursionError:
        raise LimitError(
            "the schema nests references, anyOf or constants deeper than Python's stack; flatten it at $"
        ) from None
    return lowered_schema(document, schema, grammar)


def lowered_schema(document: Document, schema: Any, grammar: Grammar) -> LoweredSchema:
    """The result of a lowering: a grammar, and what was found on the way."""
    options, widenings = document.options, document.widenings.listed()
    report = SchemaReport(SchemaEntries(schema, options, document.draft, widenings))
    slips = tuple(document.unknown.slips())
    return LoweredSchema(grammar, report, SchemaSource(schema, options), slips, widenings)


@Boundary(SchemaError)
def read_part(document: Document, part: Any, path: str) -> Grammar:
    """Lower some keywords of the schema at `path` by themselves; references lead where they lead in `document`.

    Raises what :func:`read_json_schema` raises.
    """
    try:
        return Lowering(document).run(part, path)
    except RecursionError:
        raise LimitError(f"the schema nests deeper than Python's stack; flatten it at {path}") from None


def narrowed(shape: Shape, mask: int) -> Shape | None:
    """The values of a shape that have a type in `mask`; None if they are seen to be none."""
    if shape.values is not None:
        values = [v for v in shape.values if type_of(v) & mask]
        return shape._replace(values=values) if values else None
    common = shape.mask & mask
    if common == shape.mask:
        return shape
    return shape._replace(mask=common) if common else None


class Lowering:
    """Makes the rules of one document's schemas.

    `memo` is given where values are not written as JSON.
    """

    __slots__ = ("_arrays", "_depth", "_objects", "_places", "_queue", "memo", "scalars")

    def __init__(self, document: Document, memo: Memo | None = None) -> None:
        self.memo = memo or Memo(document, self.union)
        self.scalars = Scalars(self.memo)
        self._objects = Objects(self.memo)
        self._arrays = Arrays(self.memo)
        self._depth = 0
        self._places: dict[tuple[int, int], Place] = {}  # by the identity of a shape, and the type
        self._queue: list[tuple[Place, int]] = []  # shapes whose objects or arrays are lowered later

    def run(self, schema: Any, path: str, objects_only: bool = False) -> Grammar:
        """Lower a schema; a lowering runs once."""
        try:
            start = self._objects_of((schema, path)) if objects_only else self.memo.child((schema, path))
            self.drain()
            return self.grammar(start, path)
        finally:
            self.memo.close()

    def _objects_of(self, handle: Handle) -> int | None:
        """The symbol of the objects of a schema."""
        path = path_of(handle)
        shapes = [narrow for s in self.memo.read.described(handle) if (narrow := narrowed(s, OBJECT)) is not None]
        if not shapes:
            self.memo.empty("arguments are an object, and the schema has none", path)
        return self.union(shapes, path)

    def drain(self) -> bool:
        """Lower what is in the queue; whether there was anything."""
        some = bool(self._queue)
        while self._queue:
            self._rules(*self._queue.pop())
        return some

    def grammar(self, start: int | None, path: str) -> Grammar:
        """The grammar of what the symbol `start` derives; NoDocument if that is nothing."""
        memo, out = self.memo, self.memo.out
        if start is not None and start >= 0:
            scalar, start = start, out.nonterminal("document", path)
            out.rules.append((~start, (scalar,)))
        if start is not None and memo.may_be_empty:
            start = self._trim(start)
        if start is None:
            why, where = memo.read.why
            raise NoDocument(f"no document satisfies the schema: {why} at {where}")
        options = memo.document.options
        grammar = out.build(start, None if memo.document.embedded else options.white_space_limit)
        return indented(grammar, out, options) if options.whitespace == "indent" else grammar

    def union(self, shapes: list[Shape], path: str) -> int | None:
        """The symbol of a union of shapes; None if it is empty."""
        scalars = self.scalars
        if len(shapes) == 1:
            shape = shapes[0]
            mask = shape.mask
            if not mask & ~SCALARS and shape[3:] == _ONLY_TYPES and scalars.is_plain(mask):  # the usual case
                return scalars.plain(mask, path)
        union = ScalarUnion()
        for shape in shapes:
            if shape.free:
                return self._anything()
            if shape.values is not None:
                scalars.collect_values(shape, union)
                continue
            if shape.mask & SCALARS:
                scalars.collect(shape, path, union)
            if shape.mask & ARRAY:
                union.symbols[self.nested(shape, ARRAY)] = None
            if shape.mask & OBJECT:
                union.symbols[self.nested(shape, OBJECT)] = None
        parts = [symbol for symbol in union.symbols if symbol is not None]
        parts += scalars.counted_texts(union)
        scalar = scalars.terminal(union, path)
        if scalar is not None:
            parts.insert(0, scalar)
        return self.memo.out.union(tuple(dict.fromkeys(parts)), path) if parts else None

    def _anything(self) -> int:
        return self.memo.out.anything(self.scalars.plain(SCALARS, ""))

    # ---- objects and arrays --------------------------------------------------------------------------------------

    def nested(self, shape: Shape, kind: int) -> int | None:
        """The symbol of a shape's objects or arrays, by `kind`; None if there are none."""
        place = self._places.get((id(shape), kind))
        if place is None:
            place = self._places[id(shape), kind] = Place(shape)
        elif place.is_seen and (place.symbol is not None or not place.is_open):
            return place.symbol
        if place.is_open or self._depth >= MAX_DEPTH:
            if not place.is_open and not self._later(place, kind):
                return self._anything()
            self.memo.may_be_empty = True
            place.symbol = self.memo.out.nonterminal("object" if kind == OBJECT else "array", shape.path)
            place.is_seen = True
            return place.symbol
        place.is_open = True
        depth = self._depth
        self._depth += 1
        symbol = self._rules(place, kind)
        self._depth = depth
        place.is_seen, place.is_open, place.symbol = True, False, symbol
        return symbol

    def _later(self, place: Place, kind: int) -> bool:
        """Lower a shape from the queue, with the stack empty; False if it may be anything for being too deep."""
        path = place.shape.path
        if path.count(".") + path.count("[") > MAX_NESTING:
            why = f"the schema nests deeper than {MAX_NESTING} levels; use $ref for its parts at {path}"
            self.memo.document.widenings.add(path, "", LimitError(why))
            return False
        self._queue.append((place, kind))
        return True

    def _rules(self, place: Place, kind: int) -> int | None:
        """Make the rules of a shape's objects or arrays."""
        check()
        shape, depth = place.shape, self._depth

        def make(shape: Shape) -> int | None:
            self._depth = depth  # also if it was left deeper down
            maker = self._objects if kind == OBJECT else self._arrays
            return maker.symbol(shape, place)

        if not self.memo.document.widenings.allowed:
            return make(shape)
        if kind == OBJECT:
            shape = without_names_in_doubt(self.memo, shape)
        return relaxed(self.memo, shape, kind, make)

    # ---- recursion -------------------------------------------------------------------------------------------------

    def _trim(self, start: int) -> int | None:
        """Drop the rules that derive nothing; None if the nonterminal `start` derives nothing."""
        memo, out = self.memo, self.memo.out
        got = trimmed(out.rules, len(out.names), out.unordered, ~start)
        if got is None:
            if not memo.read.why[0]:
                memo.empty("it recurs without end", out.origins[~start])
            return None
        out.rules, out.unordered = got
        return start
