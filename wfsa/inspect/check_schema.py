"""Checks a JSON Schema without a vocabulary: reports what would be enforced, or why it would be refused.

This is for a process that accepts schemas and compiles them elsewhere, or later. It runs the front end of
:func:`wfsa.compile_json_schema` and makes the automata of its terminals. The parts that need a vocabulary are omitted:
the LR automaton and its limits, and the search for keywords that contradict each other. A schema that passes here
compiles, unless it exceeds `max_lr_states` or `max_lexer_states`.
"""

from __future__ import annotations

import warnings
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from wfsa._ext.regular import automaton
from wfsa.arguments import schema_options
from wfsa.errors import LimitError, SchemaError, SchemaWarning
from wfsa.grammar.allowance import Allowance, Exhausted, check
from wfsa.grammar.boundary import Boundary
from wfsa.grammar.ir import Tokens
from wfsa.grammar.json_schema import LoweredSchema, SchemaOptions, SchemaReport, read_json_schema
from wfsa.grammar.json_schema.read.misspelt import slips_text
from wfsa.grammar.json_schema.read.sources import schema_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from wfsa.compile_options import TextKeywords


def check_json_schema(
    schema: Any,
    *,
    max_size: int = 1_000_000,
    max_nesting: int = 100,
    max_seconds: float | None = 10.0,
    max_terminal_states: int = 1 << 18,
    **options: Unpack[TextKeywords],
) -> SchemaReport:
    """Return the report that the constraint of a schema would have; no vocabulary is needed.

    schema: as in :func:`wfsa.compile_json_schema`.
    max_size: approximate limit on the characters of its JSON text.
    max_nesting: limit on the levels of objects and arrays in it.
    max_seconds: limit for the front end, which polls it; None for no limit.
    max_terminal_states, options: as for :func:`wfsa.compile_json_schema`.

    Raises SchemaError (malformed, unsupported, satisfied by nothing; ends in ``at $.path``) or LimitError. Warns
    (SchemaWarning) of keywords that are probably misspelt.
    """
    of_text = schema_options("check_json_schema", options)
    try:
        with Allowance(max_seconds), Boundary(SchemaError):
            return _checked(schema, of_text, max_size, max_nesting, max_terminal_states)
    except Exhausted as e:
        raise LimitError(f"checking the schema passed {e}; raise max_seconds") from None


def _checked(
    schema: Any, options: SchemaOptions, max_size: int, max_nesting: int, max_terminal_states: int
) -> SchemaReport:
    if isinstance(schema, (str, bytes, bytearray)) and len(schema) > max_size:
        raise LimitError(f"the schema has {len(schema)} characters, the limit is {max_size}; raise max_size")
    if not isinstance(schema, (dict, bool)):
        schema = schema_of(schema)
    _measure(schema, max_size, max_nesting)
    dropped: frozenset[str] = frozenset()
    while True:
        lowered = read_json_schema(schema, options, dropped)
        large = _too_large(lowered, max_terminal_states)
        if large is None:
            break
        message, origin = large
        if not options.lenient or not origin or origin in dropped:
            raise LimitError(message)
        dropped |= {origin}
    if lowered.slips:
        warnings.warn(slips_text(lowered.slips), SchemaWarning, stacklevel=3)
    return lowered.report


def _too_large(lowered: LoweredSchema, max_states: int) -> tuple[str, str] | None:
    """Return a message about the first terminal that has too many states, and its place; None if there is none."""
    for t in lowered.grammar.terminals:
        check()
        if isinstance(t.pattern, Tokens):
            continue
        where = f" at {t.origin}" if t.origin else ""
        try:
            automaton(t.pattern, max_states)
        except LimitError as err:
            return f"terminal {t.name!r}{where}: {err}; raise max_terminal_states", t.origin
        except RecursionError:
            raise LimitError(f"terminal {t.name!r} is nested too deeply; flatten it{where}") from None
    return None


def _measure(schema: Any, max_size: int, max_nesting: int) -> None:
    """Raise LimitError for a schema that is too large or too deep, without recursion; shared parts count each time."""
    size, todo = 0, [(schema, 1)]
    while todo:
        value, depth = todo.pop()
        if isinstance(value, dict):
            todo += ((child, depth + 1) for child in value.values())
            size += 2 + sum(len(name) + 4 for name in value if isinstance(name, str))
        elif isinstance(value, (list, tuple)):
            todo += ((child, depth + 1) for child in value)
            size += 2 + len(value)
        elif isinstance(value, str):
            size += len(value) + 2
        elif isinstance(value, int):
            size += 1 + value.bit_length() // 3
        elif isinstance(value, Decimal):
            size += len(value.as_tuple().digits)
        else:
            size += 4
        if depth > max_nesting and isinstance(value, (dict, list, tuple)):
            remedy = "use $ref for its parts, or raise max_nesting"
            raise LimitError(f"the schema nests deeper than {max_nesting} levels; {remedy}")
        if size > max_size:
            raise LimitError(f"the schema has more than {max_size} characters; make it smaller, or raise max_size")
