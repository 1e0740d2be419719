"""What a request to a server asks of the answer, as a constraint: OpenAI's, vLLM's and SGLang's fields.

    response_format        {"type": "text" | "json_object" | "json_schema" | "structural_tag", ...}     OpenAI, vLLM
    structured_outputs     {one of json, regex, choice, grammar, json_object, structural_tag}           vLLM
    regex, ebnf, json_schema, structural_tag    at the top or under sampling_params                     SGLang
    tools, tool_choice, parallel_tool_calls                                                             OpenAI

A grammar is EBNF if a line of it has ``::=``, else Lark, as vLLM has it.  Other fields say nothing about the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wfsa.calls import CallReader
from wfsa.compiler import (
    compile_gbnf,
    compile_json_schema,
    compile_lark,
    compile_regex,
    compile_structural_tag,
    pattern_text,
)
from wfsa.constraint import Constraint
from wfsa.errors import SchemaError
from wfsa.grammar.boundary import Boundary
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.grammar.json_schema.read.keywords import shown
from wfsa.grammar.json_schema.read.strict import as_asked
from wfsa.grammar.json_schema.tools import listed_tools
from wfsa.grammar.json_text import read_json
from wfsa.grammar.structural_tag.tools import tools_tag
from wfsa.grammar_constraint import GrammarConstraint
from wfsa.texts import compile_choice

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from wfsa.compile_options import CompileKeywords, CompileOptions
    from wfsa.vocab import Vocab

_OBJECT = {"type": "object"}
_SGLANG = ("regex", "ebnf", "json_schema", "structural_tag")
KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")


def compile_request(
    request: Mapping[str, Any],
    vocab: Vocab,
    *,
    tool_format: str = "hermes",
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> Constraint | None:
    """The constraint of a request's answer; None if it asks for none.

    `tool_format`: how the model writes calls (:func:`wfsa.compile_tools`); the constraint of a request with tools reads
    them back (``constraint.calls(text)``).  Tools under ``tool_choice`` "auto" beside a
    format of the answer give answers of that format only, since a server checks it.
    Raises SchemaError for a field that is wrong, and for two that ask for different things; what the compilers raise.
    """
    found = source_of(request, tool_format)
    if found is None:
        return None
    kind, source = found
    made = compile_kind(kind, source, vocab, schema_options=schema_options, options=options, **keywords)
    is_of_tools = kind == "structural_tag" and all(asked != kind for _, asked, _ in _asked_of(request))
    if is_of_tools and isinstance(made, GrammarConstraint):
        reader = CallReader(tuple(listed_tools(request["tools"])), tool_format, schema_options or SchemaOptions())
        return replace(made, _call_reader=reader)
    return made


def source_of(request: Mapping[str, Any], tool_format: str = "hermes") -> tuple[str, Any] | None:
    """Return one of `KINDS` and the source of the constraint of a request's answer; None if there is no constraint.

    Tools become a structural tag.  Raises SchemaError as :func:`compile_request` does.
    """
    asked = _asked_of(request)
    choice = request.get("tool_choice", "auto" if request.get("tools") else "none")
    if len(asked) > 1:
        raise SchemaError(f"a request asks for one format of the answer, and here are {_listed(asked)}; at $")
    if request.get("tools") and choice not in ("none", None) and not (asked and choice == "auto"):
        if asked:
            raise SchemaError(f"tool_choice asks for a call, and {asked[0][0]} for something else; at $.tool_choice")
        is_parallel = request.get("parallel_tool_calls") is not False
        return "structural_tag", tools_tag(request["tools"], choice or "auto", is_parallel, tool_format)
    if not asked:
        return None
    _, kind, source = asked[0]
    return kind, pattern_text(source) if kind == "regex" else source


def compile_kind(
    kind: str,
    value: Any,
    vocab: Vocab,
    *,
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> Constraint:
    """The constraint of one of `KINDS`: "json" (a schema or its text), "choice" (a list of texts or its JSON text), ...

    Raises SchemaError for an unknown kind, and what the compilers raise.
    """
    schemas: dict[str, Any] = {"schema_options": schema_options, "options": options, **keywords}
    plain: dict[str, Any] = {"options": options, **keywords}
    if kind == "json":
        return compile_json_schema(value, vocab, **schemas)
    if kind == "json_object":
        return compile_json_schema(_OBJECT, vocab, **schemas)
    if kind == "structural_tag":
        return compile_structural_tag(value, vocab, **schemas)
    if kind == "choice":
        return compile_choice(_choices(value), vocab)
    by_text: dict[str, Callable[..., Constraint]] = {"regex": compile_regex, "grammar": grammar_compiler(value)}
    if not isinstance(kind, str) or kind not in by_text:
        raise SchemaError(f"a constraint of the kind {shown(kind)} is not known; known are {', '.join(KINDS)}; at $")
    if not isinstance(value, str):
        raise SchemaError(f"{kind} must be a text, not {type(value).__name__}; at $.{kind}")
    return by_text[kind](value, vocab, **plain)


def grammar_compiler(text: Any) -> Callable[..., Constraint]:
    """`compile_gbnf` or `compile_lark`, by how the rules of a grammar are written."""
    return compile_gbnf if isinstance(text, str) and "::=" in text else compile_lark


@Boundary(SchemaError)
def _choices(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError as error:
            raise SchemaError(f"choice is a list of texts, or JSON text of one: {error}; at $.choice") from None
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(text, str) for text in value):
        raise SchemaError("choice must be a list of texts that is not empty; at $.choice")
    return list(value)


@Boundary(SchemaError)
def _asked_of(request: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    return list(_asked(request))


def _asked(request: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The fields that ask for something: name, kind and value."""
    if not isinstance(request, Mapping):
        raise SchemaError(f"a request is an object, not {type(request).__name__}; at $")
    given = request.get("response_format")
    if given is not None:
        yield from _of_response_format(given)
    given = request.get("structured_outputs")
    if given is not None:
        yield from _of_structured_outputs(given)
    sampling = request.get("sampling_params")
    for where, fields in (("", request), ("sampling_params.", sampling if isinstance(sampling, Mapping) else {})):
        for name in _SGLANG:
            if fields.get(name) is not None:
                yield f"{where}{name}", {"ebnf": "grammar", "json_schema": "json"}.get(name, name), fields[name]


def _of_response_format(given: Any) -> Iterator[tuple[str, str, Any]]:
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind == "json_object":
        yield "response_format", "json_object", None
    elif kind == "structural_tag":
        yield "response_format", "structural_tag", given
    elif kind == "json_schema":
        holder = given.get("json_schema", given)
        schema = holder.get("schema", holder.get("schema_")) if isinstance(holder, Mapping) else None
        if schema is None:
            raise SchemaError("the response_format has no schema; at $.response_format.json_schema")
        yield "response_format", "json", as_asked(schema, holder)
    elif kind != "text":
        known = "text, json_object, json_schema and structural_tag"
        raise SchemaError(
            f"a response_format of type {shown(kind)} is not known; known are {known}; at $.response_format"
        )


def _of_structured_outputs(given: Any) -> Iterator[tuple[str, str, Any]]:
    if not isinstance(given, Mapping):
        raise SchemaError(f"structured_outputs is an object, not {type(given).__name__}; at $.structured_outputs")
    for kind in KINDS:
        value = given.get(kind)
        if value is not None and value is not False:
            yield f"structured_outputs.{kind}", kind, value


def _listed(asked: list[tuple[str, str, Any]]) -> str:
    return " and ".join(name for name, _, _ in asked)
