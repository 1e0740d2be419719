"""A JSON Schema in, a grammar of its documents out.

    document      references                       }
    schema_object one schema object -> `Shape`     }  shapes: what the values are
    shape         intersection                     }
    alternatives  $ref, anyOf                      }
    truth         equal combinations of children   }
    scalars       terminals                        }  grammar: how they are written
    objects       rules of objects                 }
    arrays        rules of arrays                  }
    productions   the rules themselves             }

This file goes from the one to the other: a schema is a union of shapes; all scalars of all of them become one
terminal, and the objects and the arrays of each become a nonterminal.

Recursion.  A child is lowered before its parent's rules are made, so equal objects are one nonterminal by content, and
a child that nothing satisfies is known in time.  A shape that is met again while it is open gets a nonterminal in
advance; so does one that lies `MAX_DEPTH` levels below the first, to be lowered from a queue afterwards, so that a
chain of thousands of references costs no stack.  Only then a nonterminal can turn out to derive nothing, and
`_trimmed` looks for that.

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
from .domains.handles import Handle, number_of, path_of
from .domains.shape import Shape
from .domains.types import ARRAY, OBJECT, SCALARS, type_of
from .explain.report import SchemaReport, schema_entries
from .options import SchemaOptions
from .read.alternatives import Alternatives
from .read.document import Document, draft_of
from .read.emptiness import why_empty
from .read.misspelt import Slip
from .read.sources import SchemaSource, schema_of
from .widening import CAUGHT, Widening
from .write.arrays import Arrays
from .write.context import Empty, LoweringContext, Place, Symbol
from .write.indentation import indented
from .write.objects import Objects
from .write.productions import Productions
from .write.relaxing import STEPS, given, without, without_names_in_doubt
from .write.scalars import Scalars, is_plain, plain

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
    report = SchemaReport(schema_entries, schema, options, document.draft, widenings)
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


class Lowering(LoweringContext):
    """Makes the rules of one document's schemas.  A lowering runs once."""

    __slots__ = ("_depth", "_places", "_queue", "_symbols")

    def __init__(
        self, document: Document, read: Alternatives | None = None, out: Productions | None = None
    ) -> None:
        super().__init__(document, read, out)
        self._symbols: dict[int, Symbol] = {}  # by the number of a child
        self._depth = 0
        self._places: dict[tuple[int, int], Place] = {}  # by the identity of a shape, and the type
        self._queue: list[tuple[Place, int]] = []  # shapes whose objects or arrays are lowered later

    def run(self, schema: Any, path: str, objects_only: bool = False) -> Grammar:
        """Lower a schema, or its objects only."""
        start = self._objects_of((schema, path)) if objects_only else self.child((schema, path))
        self.drain()
        return self.grammar(start, path)

    def _objects_of(self, handle: Handle) -> Symbol:
        path = path_of(handle)
        shapes = [narrow for s in self.described(handle) if (narrow := narrowed(s, OBJECT)) is not None]
        return self.union(shapes, path) if shapes else Empty("arguments are an object, and the schema has none", path)

    def drain(self) -> bool:
        """Lower what is in the queue; whether there was anything."""
        some = bool(self._queue)
        while self._queue:
            place, kind = self._queue.pop()
            place.symbol = self._rules(place, kind)
        return some

    def grammar(self, start: Symbol, path: str) -> Grammar:
        """Return the grammar of what the symbol `start` derives; NoDocument if that is nothing."""
        out = self.out
        if not isinstance(start, Empty):
            if start >= 0:
                scalar, start = start, out.nonterminal("document", path)
                out.rules.append((~start, (scalar,)))
            if self.may_be_empty:
                start = self._trimmed(start)
        if isinstance(start, Empty):
            raise NoDocument(f"no document satisfies the schema: {start.why} at {start.path}")
        options = self.document.options
        grammar = out.build(start, None if self.document.embedded else options.white_space_limit)
        return indented(grammar, out, options) if options.whitespace == "indent" else grammar

    def _trimmed(self, start: int) -> Symbol:
        """Drop the rules that derive nothing, which may leave none of `start`."""
        out = self.out
        got = trimmed(out.rules, len(out.names), out.unordered, ~start)
        if got is not None:
            out.rules, out.unordered = got
            return start
        symbols = (place.symbol for place in reversed(self._places.values()))
        found = (symbol for symbol in symbols if isinstance(symbol, Empty))
        return next(found, Empty("it recurs without end", out.origins[~start]))

    def child(self, handle: Handle) -> Symbol:
        key = number_of(handle)
        got = self._symbols.get(key)
        if got is None:
            shapes, path = self.described(handle), path_of(handle)
            got = self.union(shapes, path) if shapes else Empty(*why_empty(self.read, handle))
            self._symbols[key] = got
        return got

    def described(self, handle: Handle) -> list[Shape]:
        """Return the alternatives of what is written for a child."""
        return self.read.described(handle)

    def union(self, shapes: list[Shape], path: str) -> Symbol:
        """Return the symbol of a union of shapes."""
        if len(shapes) == 1:
            shape = shapes[0]
            mask = shape.mask
            if not mask & ~SCALARS and shape[3:] == _ONLY_TYPES and is_plain(self, mask):  # the usual case
                return plain(self, mask, path)
        scalars = Scalars(self, path)
        for shape in shapes:
            if shape.free:
                return self._anything()
            if shape.values is not None:
                scalars.collect_values(shape)
                continue
            if shape.mask & SCALARS:
                scalars.collect(shape)
            if shape.mask & ARRAY:
                scalars.take(self.nested(shape, ARRAY))
            if shape.mask & OBJECT:
                scalars.take(self.nested(shape, OBJECT))
        return scalars.symbol()

    def _anything(self) -> int:
        return self.out.anything(plain(self, SCALARS, ""))

    # ---- objects and arrays --------------------------------------------------------------------------------------

    def nested(self, shape: Shape, kind: int) -> Symbol:
        """Return the symbol of a shape's objects or arrays, by `kind`."""
        place = self._places.get((id(shape), kind))
        if place is None:
            place = self._places[id(shape), kind] = Place(shape)
        elif place.symbol is not None:
            return place.symbol
        if place.is_open or self._depth >= MAX_DEPTH:
            if not place.is_open and not self._later(place, kind):
                return self._anything()
            self.may_be_empty = True
            name = "object" if kind == OBJECT else "array"
            place.symbol = place.in_advance = self.out.nonterminal(name, shape.path)
            return place.symbol
        place.is_open = True
        self._depth += 1
        try:
            place.symbol = self._rules(place, kind)
        except CAUGHT:
            place.symbol = None  # without a condition of what is around, it may be possible
            raise
        finally:
            self._depth -= 1
            place.is_open = False
        return place.symbol

    def _later(self, place: Place, kind: int) -> bool:
        """Lower a shape from the queue, with the stack empty; False if it may be anything for being too deep."""
        path = place.shape.path
        if path.count(".") + path.count("[") > MAX_NESTING:
            why = f"the schema nests deeper than {MAX_NESTING} levels; use $ref for its parts at {path}"
            self.document.widenings.add(path, "", LimitError(why))
            return False
        self._queue.append((place, kind))
        return True

    def _rules(self, place: Place, kind: int) -> Symbol:
        """Make the rules of a shape's objects or arrays, and drop conditions until that is possible, if lenient."""
        check()
        shape, widenings = place.shape, self.document.widenings
        make = Objects if kind == OBJECT else Arrays
        if widenings.allowed:
            if kind == OBJECT:
                shape = without_names_in_doubt(self.read, shape)
            for keywords in STEPS[kind]:
                if given(shape, kind, keywords):
                    try:
                        return make(self, shape, place).symbol()
                    except CAUGHT as err:
                        self.may_be_empty = True  # rules may have been left unfinished
                        shape = without(widenings, shape, kind, keywords, err)
        return make(self, shape, place).symbol()
