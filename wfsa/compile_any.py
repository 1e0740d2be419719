"""``wfsa.compile``: the compile function for whatever is given, by its Python type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from wfsa import compiler
from wfsa.constraint import Constraint
from wfsa.errors import GrammarError
from wfsa.grammar.ir import Grammar
from wfsa.grammar.json_schema.read.python_types import is_function, is_type
from wfsa.texts import compile_choice
from wfsa.vocab import Vocab, require_vocab

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from wfsa.compile_options import CompileKeywords, CompileOptions

_OF_SCHEMAS = {"$schema", "$ref", "type", "properties", "allOf", "anyOf", "oneOf"}  # a request has none of these


def compile(
    source: Any, vocab: Vocab, options: CompileOptions | None = None, **keywords: Unpack[CompileKeywords]
) -> Constraint:
    """Compile what is given for a vocabulary, as its Python type says.

    source: what is compiled. A dict, a bool, JSON text of an object, a pydantic model, a dataclass, another type or a
        function goes to :func:`wfsa.compile_json_schema`; ``re.compile(...)`` to :func:`wfsa.compile_regex`; a list,
        tuple or set of strings, or an Enum of strings, to :func:`wfsa.compile_choice`; a ``wfsa.grammar.Grammar`` is
        compiled itself.
    options, keywords: CompileOptions, or fields of them; a choice has none.

    Texts of grammars and patterns look alike, so they have functions of their own: ``compile_lark``, ``compile_gbnf``,
    ``compile_regex``; and so have lists of tools: ``compile_tools``.

    Raises GrammarError for a source of another kind, TypeError for options of a choice, and what the functions named
    here raise.
    """
    if isinstance(source, Vocab):
        raise GrammarError("the vocabulary is the second argument: wfsa.compile(source, vocab)")
    require_vocab(vocab)
    if isinstance(source, Constraint):
        raise GrammarError("this is a compiled constraint already; source.start() begins a text")
    if isinstance(source, Grammar):
        return compiler.compile(source, vocab, options, **keywords)
    if isinstance(source, re.Pattern):
        return compiler.compile_regex(source, vocab, options=options, **keywords)
    if _is_choice(source):
        if options is not None or keywords:
            raise TypeError("a choice has no options: it is complete at once")
        return compile_choice(source, vocab)
    if isinstance(source, dict) and (remedy := _remedy_of_dict(source)):
        raise GrammarError(remedy)
    is_json = isinstance(source, (str, bytes)) and source.strip()[:1] in ("{", b"{")
    if is_json or isinstance(source, (dict, bool)) or is_type(source) or is_function(source):
        return compiler.compile_json_schema(source, vocab, options=options, **keywords)
    raise GrammarError(_remedy(source))


def _is_choice(source: Any) -> bool:
    if isinstance(source, type) and issubclass(source, Enum):
        return all(isinstance(member.value, str) for member in source)
    return isinstance(source, (list, tuple, set, frozenset)) and bool(source) and all(
        isinstance(one, (str, bytes)) for one in source
    )


def _remedy_of_dict(source: dict[Any, Any]) -> str:
    """What to call for a dict that is no schema; "" for a schema."""
    if any(is_type(value) or callable(value) for value in source.values()):
        return "a dict of tools by name: call wfsa.compile_tools(tools, vocab, format=...)"
    kind = source.get("type")
    if kind == "structural_tag":
        return "a structural tag: call wfsa.compile_structural_tag(tag, vocab)"
    if kind == "json_schema" or (kind == "function" and "function" in source):
        what = "response_format" if kind == "json_schema" else "list of tools"
        return f"a part of a request: call wfsa.compile_tools({what}, vocab)"
    if not source.keys().isdisjoint(("tools", "messages", "response_format")) and not source.keys() & _OF_SCHEMAS:
        return "a request: call wfsa.compile_request(request, vocab)"
    return ""


def _remedy(source: Any) -> str:
    """What to call for a source that has a function of its own."""
    if isinstance(source, (str, bytes)):
        return (
            "a text can be a grammar or a pattern: call wfsa.compile_lark, compile_gbnf or compile_regex; a choice is "
            "a list of texts"
        )
    if isinstance(source, Iterable) and not isinstance(source, Mapping):
        listed = list(source)
        if listed and all(isinstance(one, Mapping) or is_type(one) or callable(one) for one in listed):
            return "a list of tools: call wfsa.compile_tools(tools, vocab, format=...)"
        if not listed:
            return f"an empty {type(source).__name__} allows no text"
    if callable(source):
        return "an object that can be called is a tool: call wfsa.compile_tools([tool], vocab, format=...)"
    return (
        f"wfsa.compile takes a schema, a type, a list of strings, a compiled pattern or a Grammar, not "
        f"{type(source).__name__}"
    )
