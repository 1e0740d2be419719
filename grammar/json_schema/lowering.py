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

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from wfsa.errors import LimitError, SchemaError
from wfsa.grammar.ir import MAX_UNITS, Grammar
from wfsa.grammar.json_schema.alternatives import Alternatives, TracksNeeded
from wfsa.grammar.json_schema.document import Document, draft_of, no_check
from wfsa.grammar.json_schema.finite import is_cheap, json_key, scalar_spellings
from wfsa.grammar.json_schema.indentation import indented
from wfsa.grammar.json_schema.intervals import exact, numbers
from wfsa.grammar.json_schema.lexemes import lexemes, type_names
from wfsa.grammar.json_schema.misspelt import Slip
from wfsa.grammar.json_schema.number_spellings import every_spelling
from wfsa.grammar.json_schema.options import SchemaOptions
from wfsa.grammar.json_schema.productions import Distinct, Member, Productions
from wfsa.grammar.json_schema.report import SchemaReport
from wfsa.grammar.json_schema.shape import (
    ARRAY,
    BOOLEAN,
    FRACTION,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    OPEN,
    SCALARS,
    STRING,
    UNSEEN,
    Handle,
    KeyClass,
    Shape,
    item_of,
    path_of,
    property_of,
)
from wfsa.grammar.json_schema.sources import SchemaSource, schema_of
from wfsa.grammar.json_schema.spelling import pattern_language, string_language, text_language
from wfsa.grammar.json_schema.trim import trimmed
from wfsa.grammar.json_schema.widening import CAUGHT, Unenforceable
from wfsa.grammar.regex.assertions import ANY_TEXT
from wfsa.grammar.regular import NOTHING, Literal, Regular, alt, both, minus

MAX_DEPTH = 40  # levels of objects and arrays that are lowered on Python's stack
MAX_NESTING = 1000  # segments of a path


class NoDocument(SchemaError):
    """Nothing satisfies a schema."""


@dataclass(frozen=True, slots=True)
class LoweredSchema:
    """The grammar of a schema's documents, and what of the schema it enforces."""

    grammar: Grammar
    report: SchemaReport
    source: SchemaSource
    slips: tuple[Slip, ...] = ()  # keywords that are probably misspelt


def read_json_schema(
    schema: Any, options: SchemaOptions | None = None, check: Callable[[], None] = no_check,
    too_large: frozenset[str] = frozenset(),
) -> LoweredSchema:  # fmt: skip
    """Lower a schema: a dict, a bool, JSON text, or a pydantic model or dataclass.

    `check` is called now and then; what it raises comes through.
    `too_large` are paths whose terminals have turned out to be too large, to be widened under ``lenient``.
    Raises SchemaError (malformed, unsupported, satisfied by nothing; ends in ``at $.path``) or LimitError.
    """
    options = options or SchemaOptions()
    try:
        if not isinstance(schema, (dict, bool)):
            schema = schema_of(schema)
        document = Document(schema, draft_of(schema, options.draft), options, False, check, too_large)
        grammar = _lowered(document, schema, "$")
    except RecursionError:
        raise LimitError(
            "the schema nests references, anyOf or constants deeper than Python's stack; flatten it at $"
        ) from None
    report = SchemaReport(schema, options, document.draft, document.widenings.listed())
    return LoweredSchema(grammar, report, SchemaSource(schema, options), tuple(document.unknown.slips()))


def read_part(document: Document, part: Any, path: str) -> Grammar:
    """Lower some keywords of the schema at `path` by themselves; references lead where they lead in `document`.

    Raises what :func:`read_json_schema` raises.
    """
    try:
        return _lowered(document, part, path)
    except RecursionError:
        raise LimitError(f"the schema nests deeper than Python's stack; flatten it at {path}") from None


def _lowered(document: Document, schema: Any, path: str) -> Grammar:
    try:
        return _Lowering(document).run(schema, path)
    except TracksNeeded:
        document.tracks = True
        return _Lowering(document).run(schema, path)


class _Lowering:
    __slots__ = ("_all_spellings", "_depth", "_forward", "_queue", "_symbols", "document", "lexemes", "out", "read")

    def __init__(self, document: Document) -> None:
        self.document = document
        self.read = Alternatives(self.document)
        self._all_spellings = document.options.spelling == "any"
        self.lexemes = lexemes(document.options)
        self.out = Productions(self.lexemes)
        self._symbols: dict[int, int | None] = {}  # id of a schema -> its symbol
        self._depth = 0
        self._forward = False  # was a nonterminal used before its rules were known
        self._queue: list[tuple[Shape, int]] = []

    def run(self, schema: Any, path: str) -> Grammar:
        out = self.out
        start = self._symbol(schema, path)
        while self._queue:
            shape, bit = self._queue.pop()
            self._relaxed(shape, bit)
        if start is not None and self._forward:
            start = self._trim(start)
        if start is None:
            why, where = self.read.why
            raise NoDocument(f"no document satisfies the schema: {why} at {where}")
        if start >= 0:
            scalar, start = start, out.nonterminal("document", path)
            out.rules.append((~start, (scalar,)))
        grammar, options = out.build(start), self.document.options
        return indented(grammar, out, options) if options.whitespace == "indent" else grammar

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
            handle.symbol = self._lower(self.read.of_handle(handle), path_of(handle))
        return handle.symbol

    def _lower(self, shapes: list[Shape], path: str) -> int | None:
        """The symbol of a union of shapes; None if it is empty."""
        if len(shapes) == 1:
            shape = shapes[0]
            # Path, free, mask: the usual case.
            if len(shape.__dict__) == 3 and not shape.mask & ~SCALARS and self._is_plain(shape.mask):
                return self._plain(shape.mask, path)
        plain = 0  # scalar types that are taken whole
        bounded: dict[tuple[Any, ...], Shape] = {}
        spellings: dict[bytes, None] = {}
        parts: dict[int | None, None] = {}
        for shape in shapes:
            if shape.free:
                return self._anything()
            if shape.values is not None:
                self._constants(shape, spellings, bounded, parts)
                continue
            mask = shape.mask
            if mask & SCALARS:
                plain |= mask & (NULL | BOOLEAN)
                if mask & NUMBER:
                    excluded = tuple(v for v in shape.excluded if not isinstance(v, str))
                    conditions = (
                        shape.low, shape.low_open, shape.high, shape.high_open, shape.multiples, shape.not_multiples,
                        tuple(map(exact, excluded)),
                    )  # fmt: skip
                    if conditions == NO_CONDITIONS and mask & NUMBER != FRACTION and self._is_plain(mask):
                        plain |= mask & NUMBER
                    else:
                        bounded[self._numbers(mask, conditions)] = shape
                if mask & STRING:
                    if path in self.document.widenings.too_large:
                        shape = self._any_texts(shape)
                    texts = tuple(v for v in shape.excluded if isinstance(v, str))
                    bounds = shape.min_length, shape.max_length, shape.patterns, shape.formats
                    nots = shape.not_patterns, shape.not_formats, texts
                    if _is_counted(shape) and not texts:
                        parts[self._counted(shape)] = None
                    elif bounds != (0, None, (), ()) or nots != ((), (), ()):
                        bounded[("s", *bounds, *nots)] = shape
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

    def _any_texts(self, shape: Shape) -> Shape:
        """`shape` without what makes an automaton of its strings large."""
        some = {"patterns": "pattern", "formats": "format", "not_patterns": "not", "not_formats": "not"}
        given = {field: () for field in some if getattr(shape, field)}
        for field in given:
            self.document.widenings.add(shape.path, some[field], "its automaton is too large")
        return shape.changed(loose=True, **given) if given else shape

    def _is_plain(self, mask: int) -> bool:
        """Whether the numbers of these types are simple to write: all integers in any spelling are not."""
        return not self._all_spellings or mask & NUMBER != INTEGER

    def _numbers(self, mask: int, conditions: tuple[Any, ...]) -> tuple[Any, ...]:
        """The key of a set of numbers: all that its spellings depend on."""
        wholes = self.document.wholes if self._all_spellings else "canonical"
        return "n", wholes, bool(mask & INTEGER), bool(mask & FRACTION), *conditions

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
        if not plain and not spellings and all(kind == "c" for kind, *_ in bounded):
            return self.out.one_of(tuple(spelling for _, spelling in bounded), path, True)
        pattern = self.lexemes.cached(key) if not spellings else None
        if len(bounded) == 1 and not plain and not spellings:
            ((kind, *conditions), shape) = next(iter(bounded.items()))
            name = "number in bounds" if kind == "n" else _string_name(shape)
            if kind == "n" and conditions[3] is not None and conditions[3] == conditions[5]:
                name = str(conditions[3])
            elif kind == "n" and conditions[3:] == [*NO_CONDITIONS]:
                name = "integer" if conditions[1] else "number"
        if pattern is None:
            dropped = len(self.document.widenings)
            trees = [tree for k, s in bounded.items() if (tree := self._bounded(k, s)) is not None]
            if plain:
                trees.append(self.lexemes.plain_body(plain))
            if not trees and not spellings:
                return None
            pattern = self.lexemes.glued(alt(*trees, *map(Literal, spellings)))
            if len(self.document.widenings) > dropped:  # to be found again, and listed, at every place
                return self.out.scalar((key, path), name, pattern, path)
            if not spellings:
                self.lexemes.keep(key, pattern)
        return self.out.scalar(key, name, pattern, path)

    def _bounded(self, key: tuple[Any, ...], shape: Shape) -> Regular | None:
        """The spellings of the numbers or strings within a shape's bounds."""
        tree: Regular | None
        if key[0] == "c":
            return self.lexemes.constant(key[1])
        if key[0] == "s":
            tree = string_language(self.document.options.spelling, *key[1:])
            if tree is None:
                self.read.why = "no string has the length and matches the pattern or format", shape.path
            return tree
        _, wholes, whole, fraction, low, low_open, high, high_open, multiples, not_multiples, excluded = key
        conditions = whole, fraction, low, low_open, high, high_open, multiples, not_multiples, excluded
        try:
            tree = numbers(*conditions) if wholes == "canonical" else every_spelling(wholes, *conditions)
        except LimitError as err:
            error = LimitError(f"{err} at {shape.path}")
            if multiples or not_multiples:
                self.document.widenings.add(shape.path, "multipleOf" if multiples else "not", error)
                without = low, low_open, high, high_open, (), (), excluded
                return self._bounded(("n", wholes, whole, fraction, *without), shape)
            raise error from None
        if tree == NOTHING:
            kind = "number" if fraction else "integer"
            least = "" if low is None else f" {'above' if low_open else 'from'} {low}"
            most = "" if high is None else f" {'below' if high_open else 'up to'} {high}"
            self.read.why = f"there is no {kind}{least}{most}", shape.path
            return None
        return tree

    # ---- constants -----------------------------------------------------------------------------------------------

    def _constants(
        self, shape: Shape, spellings: dict[bytes, None], bounded: dict[tuple[Any, ...], Shape],
        parts: dict[int | None, None],
    ) -> None:  # fmt: skip
        """Add the values of an enum that satisfy the keywords beside it."""
        assert shape.values is not None
        some = False
        all_spellings = self._all_spellings and is_cheap(shape.values)
        any_order = self.document.options.property_order == "any"
        for value in shape.values:
            if not self.read.accepts(value, shape):
                continue
            if isinstance(value, (dict, list)):
                symbol = self.out.constant(value, all_spellings, any_order, shape.path)
                some |= symbol is not None
                parts[symbol] = None
            elif all_spellings and isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                number = exact(value)
                bounded[self._numbers(shape.mask, (number, False, number, False, (), (), ()))] = shape
                some = True
            else:
                for spelling in scalar_spellings(value):
                    some = True
                    if all_spellings:
                        bounded["c", spelling] = shape
                    else:
                        spellings[spelling] = None
        if not some:
            self.read.why = "none of the values in enum or const satisfies the keywords beside it", shape.path

    # ---- objects and arrays --------------------------------------------------------------------------------------

    def _object(self, shape: Shape) -> int | None:
        """The symbol of a shape's objects; None if there are none."""
        got = shape.object_symbol
        if got != UNSEEN and got != OPEN:
            return got
        if got == OPEN or self._depth >= MAX_DEPTH:
            if got == UNSEEN and not self._later(shape, OBJECT):
                return self._anything()
            self._forward = True
            got = shape.object_symbol = self.out.nonterminal("object", shape.path)
            return got
        shape.object_symbol = OPEN
        self._depth += 1
        got = shape.object_symbol = self._relaxed(shape, OBJECT)
        self._depth -= 1
        return got

    def _array(self, shape: Shape) -> int | None:
        """The symbol of a shape's arrays; None if there are none."""
        got = shape.array_symbol
        if got != UNSEEN and got != OPEN:
            return got
        if got == OPEN or self._depth >= MAX_DEPTH:
            if got == UNSEEN and not self._later(shape, ARRAY):
                return self._anything()
            self._forward = True
            got = shape.array_symbol = self.out.nonterminal("array", shape.path)
            return got
        shape.array_symbol = OPEN
        self._depth += 1
        got = shape.array_symbol = self._relaxed(shape, ARRAY)
        self._depth -= 1
        return got

    def _later(self, shape: Shape, bit: int) -> bool:
        """Lower a shape from the queue, with the stack empty; False if it may be anything for being too deep."""
        path = shape.path
        if path.count(".") + path.count("[") > MAX_NESTING:
            why = f"the schema nests deeper than {MAX_NESTING} levels; use $ref for its parts at {path}"
            self.document.widenings.add(path, "", LimitError(why))
            return False
        self._queue.append((shape, bit))
        return True

    def _relaxed(self, shape: Shape, bit: int) -> int | None:
        """Make the rules of a shape's objects or arrays, without the conditions that cannot be enforced if lenient."""
        widenings = self.document.widenings
        make, steps = (self._members, OBJECT_STEPS) if bit == OBJECT else (self._items, ARRAY_STEPS)
        if not widenings.allowed:
            return make(shape)
        if bit == OBJECT:
            self._drop_loose_names(shape)
            if shape.path in widenings.too_large:
                self._drop(shape, ("existentials", "universals"), "the automaton of its names is too large")
        depth = self._depth
        while True:
            try:
                return make(shape)
            except CAUGHT as err:
                self._depth = depth
                self._forward = True  # rules may have been left unfinished
                if not any(self._drop(shape, fields, err) for fields in steps):
                    raise

    def _drop(self, shape: Shape, fields: tuple[str, ...], why: Exception | str) -> bool:
        """Take conditions away from a shape; False if it has none of them."""
        given = [field for field in fields if field in shape.__dict__]
        for field in given:
            del shape.__dict__[field]
            self.document.widenings.add(shape.path, KEYWORD_OF.get(field, ""), why)
        if given:
            shape.loose = True
        return bool(given)

    def _drop_loose_names(self, shape: Shape) -> None:
        """Names that are forbidden for not being in a set that is too large are not known."""
        known = tuple(u for u in shape.universals if u[0].key is None or not self.read.is_loose(u[0].key))
        if len(known) < len(shape.universals):
            shape.universals = known
            shape.loose = True
            self.document.widenings.add(shape.path, "propertyNames", "its names are not enforced exactly")

    def _members(self, shape: Shape) -> int | None:
        """Make the rules of a shape's objects."""
        any_order = False
        if self.document.options.property_order == "any":
            # One name has an order, too, where others may come before it.
            named, rest = len({*shape.properties, *shape.required}), shape.additional
            any_order = named > (1 if isinstance(rest, tuple) and rest[0] is False else 0)
        counts = shape.min_properties or shape.max_properties is not None
        if shape.universals or shape.existentials or counts or any_order:
            return self._members_with_state(shape)
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

    def _members_with_state(self, shape: Shape) -> int | None:
        """The same for objects whose keys fall into classes, or that count."""
        out, read, path, required = self.out, self.read, shape.path, shape.required
        wanted = shape.existentials
        if len(wanted) > MAX_WANTED:
            raise LimitError(f"more than {MAX_WANTED} conditions on some property of one object at {path}")

        def choices(handle: Handle, relevant: list[int]) -> tuple[tuple[int, int], ...]:
            """A member's values, told apart by the conditions that they meet."""
            found = []
            for bits in range(1 << len(relevant)):
                chosen, value = 0, handle
                for k, i in enumerate(relevant):
                    asked = wanted[i][1]
                    met = bits >> k & 1
                    chosen |= met << i
                    value = read.conjoin(value, asked if met else read.negate(asked))
                if isinstance(value, tuple) and value[0] is False:
                    continue
                symbol = self._child(value)
                if symbol is not None:
                    found.append((symbol, chosen))
            return tuple(found)

        classes = [keys for keys, _ in (*shape.universals, *wanted)]
        names = dict.fromkeys((*shape.properties, *required, *(n for keys in classes for n in sorted(keys.names))))
        members = []
        for name in names:
            handle = property_of(shape, name)
            for keys, also in shape.universals:
                if read.in_class(name, keys, wide=True):
                    handle = read.conjoin(handle, also)
            got = choices(handle, [i for i, (keys, _) in enumerate(wanted) if read.in_class(name, keys)])
            key = out.key(name, path) if got else None
            if key is None:
                if name in required:
                    why, where = self.read.why
                    self.read.why = f"property {name!r} is required and nothing fits it: {why}", where
                    return None
                continue
            members.append((key, got, name in required))
        extras = []
        for tree, handle, relevant in self._key_classes(shape, tuple(names)):
            got = choices(handle, relevant)
            if got:
                extras.append((out.class_key(tree, path), got))
        low, high = shape.min_properties, shape.max_properties
        if high is not None and low > high:
            self.read.why = f"an object needs {low} properties and can have {high}", path
            return None
        if high is not None and not extras and high >= len(members):
            high = None
        needed = sum(is_required for _, _, is_required in members)
        if (high is not None and high < needed) or (not extras and low > len(members)):
            few = f"only {len(members)} names" if high is None or high >= needed else f"at most {high} properties"
            self.read.why = f"an object needs {max(low, needed)} properties and can have {few}", path
            return None
        if low <= needed:
            low = 0
        forward = shape.object_symbol
        # A set of members says which conditions are met if the name alone decides, and no bound is in the way.
        decided = all(len(got) == 1 for _, got, _ in members) and all(len(got) == 1 for _, got in extras)
        if self.document.options.property_order == "any" and (not wanted or (decided and high is None)):
            bits = [got[0][1] for got in (*(got for _, got, _ in members), *(got for _, got in extras))]
            groups = tuple(tuple(k for k, b in enumerate(bits) if b >> i & 1) for i in range(len(wanted)))
            if not all(groups):
                self.read.why = "no property can satisfy one of the conditions", path
                return None
            return out.unordered_object(
                tuple((key, got[0][0], is_required) for key, got, is_required in members),
                tuple((key, got[0][0]) for key, got in extras), low, high, groups, path,
                forward if forward is not None and forward < 0 else None,
            )  # fmt: skip
        self._forward = True  # no state may be an end
        return out.object_with_state(
            tuple(members), tuple(extras), low, high, (1 << len(wanted)) - 1,
            self.document.options.property_order == "any", path,
            forward if forward is not None and forward < 0 else None,
        )  # fmt: skip

    def _key_classes(self, shape: Shape, names: tuple[str, ...]) -> list[tuple[Regular, Handle, list[int]]]:
        """A partition of all other keys: the texts, what their values have to satisfy, the `existentials` they are in.

        A key that may or may not have a format is in no part.
        """
        read = self.read
        classes = [keys for keys, _ in (*shape.universals, *shape.existentials)]
        own = ([] if k.pattern is None else [k.pattern] for k in classes)
        patterns = dict.fromkeys(p for k, one in zip(classes, own, strict=True) for p in (*sorted(k.patterns), *one))
        schemas = {id(k.key): k.key for k in classes if k.key is not None}
        atoms: list[tuple[Any, Regular, Regular]] = [(p, pattern_language(p), pattern_language(p)) for p in patterns]
        atoms += [(i, self._texts(handle), self._texts(handle, wide=True)) for i, handle in schemas.items()]
        if len(atoms) > MAX_CLASSES:
            raise LimitError(f"more than {MAX_CLASSES} patterns of property names in one object at {shape.path}")
        taken = []
        for name in names:
            try:
                taken.append(Literal(name.encode()))
            except UnicodeEncodeError:
                pass  # no document spells it
        found: list[tuple[Regular, Handle, list[int]]] = []
        for bits in range(1 << len(atoms)):
            chosen = {mark for k, (mark, *_) in enumerate(atoms) if bits >> k & 1}

            def holds(keys: KeyClass, chosen: set[Any] = chosen) -> bool:
                return (
                    not keys.patterns & chosen
                    and (keys.pattern is None or keys.pattern in chosen)
                    and (keys.key is None or id(keys.key) in chosen)
                )

            handle = shape.additional
            for keys, also in shape.universals:
                if holds(keys):
                    handle = read.conjoin(handle, also)
            if isinstance(handle, tuple) and handle[0] is False:
                continue
            inside = [tree for k, (_, tree, _) in enumerate(atoms) if bits >> k & 1]
            outside = [tree for k, (*_, tree) in enumerate(atoms) if not bits >> k & 1]
            tree = both(*inside) if inside else ANY_TEXT
            if outside or taken:
                tree = minus(tree, alt(*outside, *taken))
            found.append((tree, handle, [i for i, (keys, _) in enumerate(shape.existentials) if holds(keys)]))
        times = Counter(tree for tree, *_ in found)
        return [part for part in found if times[part[0]] == 1]  # no text is in two parts, so equal ones are empty

    def _texts(self, handle: Handle, wide: bool = False) -> Regular:
        """The texts that a schema admits, or may admit."""
        trees: list[Regular] = []
        for shape in self.read.of_handle(handle):
            if not shape.mask & STRING:
                continue
            if shape.values is not None:
                found = [v for v in shape.values if isinstance(v, str) and self.read.accepts(v, shape, wide)]
                trees += [Literal(v.encode("utf-8", "replace")) for v in found]
                continue
            tree = text_language(
                shape.min_length, shape.max_length, shape.patterns, shape.formats, shape.not_patterns,
                shape.not_formats, tuple(v for v in shape.excluded if isinstance(v, str)), wide,
            )  # fmt: skip
            if tree is not None:
                trees.append(tree)
        return alt(*trees)

    def _items_with_state(self, shape: Shape, values: list[Any] | None) -> int | None:
        """Arrays that count kinds of items, or whose items must not repeat; `values` if they are few and may not."""
        read, path = self.read, shape.path
        counted = shape.contains
        if len(counted) > MAX_WANTED:
            raise LimitError(f"more than {MAX_WANTED} kinds of items are counted at {path}")
        low, high = shape.min_items, shape.max_items
        cap = high if high is not None else max(low, len(shape.prefix), *(c.start for c in counted), 1)
        distinct = self._distinct(shape) if values is None else "no"  # compared as they are written
        if values is None and shape.repeated:
            raise Unenforceable(
                f"the complement of uniqueItems cannot be enforced over more than {MAX_DISTINCT} different items; give "
                f"the items an enum, or take SchemaOptions(unique_items='unchecked') at {path}"
            )

        def counts_after(counts: tuple[int, ...], met: int) -> tuple[int, ...] | None:
            out = []
            for k, (n, c) in enumerate(zip(counts, counted, strict=True)):
                n += met >> k & 1
                if c.high is not None and n > c.high:
                    return None
                out.append(n if c.high is not None else min(n, c.low))
            return tuple(out)

        def kinds(index: int) -> Iterator[tuple[int, Handle | int, Any]]:
            """(kinds it counts for, its handle or symbol, its number among the values) of the items at an index."""
            if values is not None:
                for number, value in enumerate(values):
                    if not read.admits(item_of(shape, index), value):
                        continue
                    there = [(k, c.handle) for k, c in enumerate(counted) if index >= c.start]
                    met, may = (sum(read.admits(h, value, wide) << k for k, h in there) for wide in (False, True))
                    if met == may:
                        yield met, ({"enum": [value]}, path), number
                return
            relevant = [k for k, c in enumerate(counted) if index >= c.start]
            for bits in range(1 << len(relevant)):
                met, handle = 0, item_of(shape, index)
                for j, k in enumerate(relevant):
                    is_in = bits >> j & 1
                    met |= is_in << k
                    handle = read.conjoin(handle, counted[k].handle if is_in else read.negate(counted[k].handle))
                if not (isinstance(handle, tuple) and handle[0] is False):
                    yield met, handle, None

        symbols: dict[int, list[tuple[int, int, Any]]] = {}

        def items_at(index: int) -> list[tuple[int, int, Any]]:
            if index not in symbols:
                symbols[index] = []
                for met, handle, number in kinds(index):
                    symbol = self._child(handle)  # type: ignore[arg-type]
                    if symbol is not None:
                        symbols[index].append((met, symbol, number))
            return symbols[index]

        def choices(state: tuple[int, tuple[int, ...], int]) -> Iterator[tuple[int, Any]]:
            n, counts, used = state
            if high is not None and n >= high:
                return
            for met, symbol, number in items_at(n):
                after = counts_after(counts, met)
                if after is None:
                    continue
                now = used
                if number is not None:
                    if used >> number & 1 and (shape.unique or used < 0):
                        if shape.unique:
                            continue
                    now = used | 1 << number if shape.unique or (used >= 0 and not used >> number & 1) else -1
                yield symbol, (min(n + 1, cap), after, now)

        def is_end(state: tuple[int, tuple[int, ...], int]) -> bool:
            n, counts, used = state
            enough = all(c.low <= k for c, k in zip(counted, counts, strict=True))
            return n >= low and enough and not (shape.repeated and used >= 0)

        forward = shape.array_symbol
        self._forward = True
        return self.out.array_with_state(
            (0, (0,) * len(counted), 0), choices, is_end, path,
            forward if forward is not None and forward < 0 else None, distinct,
        )  # fmt: skip

    def _values(self, shape: Shape) -> list[Any] | None:
        """All values that an item of an array can have, if they are listed."""
        found: dict[Any, Any] = {}
        n = len(shape.prefix) + (shape.max_items is None or shape.max_items > len(shape.prefix))
        for i in range(n):
            some = self._listed(item_of(shape, i))
            if some is None:
                return None
            found.update(some)
        return list(found.values())

    def _listed(self, handle: Handle) -> dict[Any, Any] | None:
        """The values that fit, by what makes them equal, if they are listed."""
        found: dict[Any, Any] = {}
        for s in self.read.of_handle(handle):
            if s.values is None:
                if s.mask & ~(NULL | BOOLEAN):
                    return None
                some = [None] * bool(s.mask & NULL) + [False, True] * bool(s.mask & BOOLEAN)
            else:
                some = [v for v in s.values if self.read.accepts(v, s)]
            found.update((json_key(v), v) for v in some)
        return found

    def _longest(self, shape: Shape) -> int | None:
        """How many items an array without equal ones can have, as far as positions whose values are listed tell.

        The first length at which no different values can be given to those positions, by augmenting paths (Kuhn 1955).
        """
        rest = self._listed(shape.rest)
        wanted = [self._listed(handle) for handle in shape.prefix]
        wanted += [] if rest is None or len(rest) > MAX_DISTINCT else [rest] * (len(rest) + 1)
        holder: dict[Any, int] = {}

        def place(position: int, seen: set[Any]) -> bool:
            for value in wanted[position] or ():
                if value not in seen:
                    seen.add(value)
                    if value not in holder or place(holder[value], seen):
                        holder[value] = position
                        return True
            return False

        for position, values in enumerate(wanted):
            if values is not None and len(values) <= MAX_DISTINCT and not place(position, set()):
                return position
        return None

    def _distinct(self, shape: Shape) -> Distinct:
        """Must the items of a shape differ, and has one of them no end of values to have?"""
        if not shape.unique:
            return "no"
        for i in range(len(shape.prefix) + 1):
            if not self._is_endless(item_of(shape, i)):
                return "exhaustible"
        return "endless"

    def _is_endless(self, handle: Handle, depth: int = 3) -> bool:
        """Whether so many values certainly fit that no document can have them all."""
        for s in self.read.of_handle(handle) if depth else ():
            if s.values is not None:
                continue
            if s.mask & STRING and (s.max_length is None or s.max_length > FEW) and not (s.patterns or s.formats):
                return True
            if s.mask & NUMBER and (s.low is None or s.high is None or s.high - s.low > MANY):
                return True
            if s.mask & OBJECT and s.max_properties != 0 and any(
                self._is_endless(of, depth - 1) for of in (*s.properties.values(), s.additional)
            ):
                return True
            if s.mask & ARRAY and s.max_items != 0 and self._is_endless(item_of(s, 0), depth - 1):
                return True
        return False

    def _items(self, shape: Shape) -> int | None:
        """Make the rules of a shape's arrays."""
        most = shape.max_items
        unique = shape.unique and (most is None or most > 1)
        counts = bool(shape.contains or shape.repeated)
        values = self._values(shape) if unique or (counts and (shape.unique or shape.repeated)) else None
        few = values if values is not None and len(values) <= MAX_DISTINCT else None
        longest = self._longest(shape) if unique else None
        if longest is not None and longest < shape.min_items:
            self.read.why = f"an array needs {shape.min_items} different items and can have {longest}", shape.path
            return None
        if counts or few is not None:
            return self._items_with_state(shape, few)
        low, high = shape.min_items, shape.max_items
        if longest is not None:
            high = longest if high is None else min(high, longest)
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
        if values is not None and len(values) < low:
            self.read.why = f"an array needs {low} different items and there are {len(values)}", shape.path
            return None
        while prefix and prefix[-1] == rest:
            prefix.pop()
        forward = shape.array_symbol
        return self.out.array(
            tuple(prefix), rest, low, high, shape.path, forward if forward is not None and forward < 0 else None,
            self._distinct(shape) if unique else "no",
        )  # fmt: skip

    # ---- recursion -------------------------------------------------------------------------------------------------

    def _trim(self, start: int) -> int | None:
        """Drop the rules that derive nothing; None if `start` does."""
        if start >= 0:
            return start
        out = self.out
        got = trimmed(out.rules, len(out.names), out.unordered, ~start)
        if got is None:
            if not self.read.why[0]:
                self.read.why = "it recurs without end", out.origins[~start]
            return None
        out.rules, out.unordered = got
        return start


UNKNOWN = object()
NO_CONDITIONS = (None, False, None, False, (), (), ())
# What is dropped from an object or array under ``lenient`` if it cannot be enforced, a step at a time.
OBJECT_STEPS: tuple[tuple[str, ...], ...] = (
    ("existentials",), ("universals",), ("min_properties", "max_properties"),
    ("properties", "additional", "required"),
)  # fmt: skip
ARRAY_STEPS: tuple[tuple[str, ...], ...] = (
    ("unique", "repeated"), ("contains",), ("min_items", "max_items"), ("prefix", "rest"),
)  # fmt: skip
KEYWORD_OF = {
    "unique": "uniqueItems", "contains": "contains", "min_items": "minItems", "max_items": "maxItems",
    "min_properties": "minProperties", "max_properties": "maxProperties", "properties": "properties",
    "additional": "additionalProperties", "required": "required",
}  # fmt: skip
MAX_CLASSES = 6  # patterns and name schemas in one object that are told apart
MAX_WANTED = 4  # conditions on some member, or kinds of items that are counted
MAX_DISTINCT = 10  # values of the items of an array that must not repeat
MANY = 1 << 20  # items that no array has
FEW = 2  # at least so many characters are cheaper spelled out than counted


def _is_counted(shape: Shape) -> bool:
    """Whether a string is bounded by its length alone, and not by very little."""
    if shape.max_length is None and shape.min_length <= FEW:
        return False
    return not (shape.patterns or shape.formats or shape.not_patterns or shape.not_formats)


def _string_name(shape: Shape) -> str:
    """A string terminal, for messages."""
    if shape.formats:
        return f"string ({shape.formats[0]})"
    if shape.patterns:
        return f"string /{shape.patterns[0]}/"
    return "string of bounded length"
