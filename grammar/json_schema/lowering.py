"""A JSON Schema in, a grammar of its documents out.

    document      references                       }
    keywords      one schema object -> `Shape`     }  shapes: what the values are
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
from wfsa.grammar.allowance import check
from wfsa.grammar.boundary import Boundary
from wfsa.grammar.ir import Grammar
from wfsa.grammar.json_schema.arrays import Arrays
from wfsa.grammar.json_schema.document import Document, draft_of
from wfsa.grammar.json_schema.indentation import indented
from wfsa.grammar.json_schema.memo import Memo
from wfsa.grammar.json_schema.misspelt import Slip
from wfsa.grammar.json_schema.objects import Objects
from wfsa.grammar.json_schema.options import SchemaOptions
from wfsa.grammar.json_schema.relaxing import ARRAY_STEPS, OBJECT_STEPS, relaxed, without_names_in_doubt
from wfsa.grammar.json_schema.report import SchemaEntries, SchemaReport
from wfsa.grammar.json_schema.scalars import Scalars, ScalarUnion
from wfsa.grammar.json_schema.shape import ARRAY, OBJECT, OPEN, SCALARS, UNSEEN, Shape
from wfsa.grammar.json_schema.sources import SchemaSource, schema_of
from wfsa.grammar.json_schema.trim import trimmed
from wfsa.grammar.json_schema.widening import Widening

MAX_DEPTH = 40  # levels of objects and arrays that are lowered on Python's stack
MAX_NESTING = 1000  # segments of a path


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
    embedded: bool = False,
) -> LoweredSchema:  # fmt: skip
    """Lower a schema: a dict, a bool, JSON text, or a pydantic model or dataclass.

    `too_large` are paths whose terminals have turned out to be too large, to be widened under ``lenient``.
    `embedded`: for documents that are part of a larger text (:mod:`wfsa.grammar.inline`).  There ``uniqueItems`` is not
    enforced, which the report says.
    Raises SchemaError (malformed, unsupported, satisfied by nothing; ends in ``at $.path``) or LimitError.
    """
    options = options or SchemaOptions()
    try:
        if not isinstance(schema, (dict, bool)):
            schema = schema_of(schema)
        if embedded and options.unique_items != "unchecked":
            options = replace(options, unique_items="unchecked")
        document = Document(schema, draft_of(schema, options.draft), options, too_large, embedded)
        grammar = _Lowering(document).run(schema, "$")
    except RecursionError:
        raise LimitError(
            "the schema nests references, anyOf or constants deeper than Python's stack; flatten it at $"
        ) from None
    widenings = document.widenings.listed()
    report = SchemaReport(SchemaEntries(schema, options, document.draft, widenings))
    slips = tuple(document.unknown.slips())
    return LoweredSchema(grammar, report, SchemaSource(schema, options), slips, widenings)


@Boundary(SchemaError)
def read_part(document: Document, part: Any, path: str) -> Grammar:
    """Lower some keywords of the schema at `path` by themselves; references lead where they lead in `document`.

    Raises what :func:`read_json_schema` raises.
    """
    try:
        return _Lowering(document).run(part, path)
    except RecursionError:
        raise LimitError(f"the schema nests deeper than Python's stack; flatten it at {path}") from None


class _Lowering:
    __slots__ = ("_arrays", "_depth", "_memo", "_objects", "_queue", "_scalars")

    def __init__(self, document: Document) -> None:
        self._memo = Memo(document, self._union)
        self._scalars = Scalars(self._memo)
        self._objects = Objects(self._memo)
        self._arrays = Arrays(self._memo)
        self._depth = 0
        self._queue: list[tuple[Shape, int]] = []  # shapes whose objects or arrays are lowered later

    def run(self, schema: Any, path: str) -> Grammar:
        """Lower a schema; a lowering runs once."""
        try:
            return self._grammar(schema, path)
        finally:
            self._memo.close()

    def _grammar(self, schema: Any, path: str) -> Grammar:
        memo, out = self._memo, self._memo.out
        start = memo.child((schema, path))
        while self._queue:
            self._rules(*self._queue.pop())
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

    def _union(self, shapes: list[Shape], path: str) -> int | None:
        """The symbol of a union of shapes; None if it is empty."""
        scalars = self._scalars
        if len(shapes) == 1:
            shape = shapes[0]
            # Path, free, mask: the usual case.
            if len(shape.__dict__) == 3 and not shape.mask & ~SCALARS and scalars.is_plain(shape.mask):
                return scalars.plain(shape.mask, path)
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
                union.symbols[self._nested(shape, ARRAY)] = None
            if shape.mask & OBJECT:
                union.symbols[self._nested(shape, OBJECT)] = None
        parts = [symbol for symbol in union.symbols if symbol is not None]
        parts += scalars.counted_texts(union)
        scalar = scalars.terminal(union, path)
        if scalar is not None:
            parts.insert(0, scalar)
        return self._memo.out.union(tuple(dict.fromkeys(parts)), path) if parts else None

    def _anything(self) -> int:
        return self._memo.out.anything(self._scalars.plain(SCALARS, ""))

    # ---- objects and arrays --------------------------------------------------------------------------------------

    def _nested(self, shape: Shape, kind: int) -> int | None:
        """The symbol of a shape's objects or arrays, by `kind`; None if there are none."""
        field, name = ("object_symbol", "object") if kind == OBJECT else ("array_symbol", "array")
        got: int | None = getattr(shape, field)
        if got != UNSEEN and got != OPEN:
            return got
        if got == OPEN or self._depth >= MAX_DEPTH:
            if got == UNSEEN and not self._later(shape, kind):
                return self._anything()
            self._memo.may_be_empty = True
            got = self._memo.out.nonterminal(name, shape.path)
        else:
            setattr(shape, field, OPEN)
            depth = self._depth
            self._depth += 1
            got = self._rules(shape, kind)
            self._depth = depth
        setattr(shape, field, got)
        return got

    def _later(self, shape: Shape, kind: int) -> bool:
        """Lower a shape from the queue, with the stack empty; False if it may be anything for being too deep."""
        path = shape.path
        if path.count(".") + path.count("[") > MAX_NESTING:
            why = f"the schema nests deeper than {MAX_NESTING} levels; use $ref for its parts at {path}"
            self._memo.document.widenings.add(path, "", LimitError(why))
            return False
        self._queue.append((shape, kind))
        return True

    def _rules(self, shape: Shape, kind: int) -> int | None:
        """Make the rules of a shape's objects or arrays."""
        check()
        make, steps = (self._objects.symbol, OBJECT_STEPS) if kind == OBJECT else (self._arrays.symbol, ARRAY_STEPS)
        if not self._memo.document.widenings.allowed:
            return make(shape)
        if kind == OBJECT:
            without_names_in_doubt(self._memo, shape)
        depth = self._depth

        def at_this_depth(shape: Shape) -> int | None:
            self._depth = depth  # also if it was left deeper down
            return make(shape)

        return relaxed(self._memo, shape, at_this_depth, steps)

    # ---- recursion -------------------------------------------------------------------------------------------------

    def _trim(self, start: int) -> int | None:
        """Drop the rules that derive nothing; None if the nonterminal `start` derives nothing."""
        memo, out = self._memo, self._memo.out
        got = trimmed(out.rules, len(out.names), out.unordered, ~start)
        if got is None:
            if not memo.read.why[0]:
                memo.empty("it recurs without end", out.origins[~start])
            return None
        out.rules, out.unordered = got
        return start
