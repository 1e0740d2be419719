r"""Tool calls as models write them: a list of tools and a format of calls, as a structural tag.

    format    one call                                                       several
    hermes    <tool_call>\n{"name": N, "arguments": S}\n</tool_call>         one behind the other, text between
    qwen      the same
    llama3    {"name": N, "parameters": S}, or behind <|python_tag|>         separated by "; "
    mistral   [TOOL_CALLS][{"name": N, "arguments": S}]                      in the list

where N is the tool's name and S a document of its schema.  Sources: the chat templates of Hermes 2 Pro, Qwen 2.5 and 3,
Llama 3.1 and Mistral 7B v0.3.  What begins a call there may be a special token, and is that token where the vocabulary
has one of the name.

    tool_choice   "auto": text, and calls where one begins; "required": calls; the name of a tool: calls of that one
    parallel      more than one call
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wfsa.errors import SchemaError
from wfsa.grammar.json_schema.keywords import shown
from wfsa.grammar.json_schema.tools import ToolSchema, listed_tools

Format = dict[str, Any]


def tools_tag(
    tools: Any, tool_choice: Any, parallel: bool, form: str, has_token: Callable[[str], bool]
) -> Format:
    """The structural tag of answers with calls.

    `tool_choice`: "auto", "required", a name, or OpenAI's ``{"type": "function", "function": {"name": ...}}``.
    Raises SchemaError for what is no list of tools, a choice of none of them, and an unknown format.
    """
    if form not in FORMATS:
        raise SchemaError(f"the format {shown(form)} of tool calls is not known; known are {', '.join(FORMATS)}; at $")
    listed = listed_tools(tools)
    name = chosen_name(tool_choice)
    if name is not None:
        listed = [tool for tool in listed if tool.name == name]
        if not listed:
            raise SchemaError(f"tool_choice names the tool {shown(name)}, which is not in the list; at $")
    must = name is not None or tool_choice == "required"
    return FORMATS[form](listed, must, parallel, has_token)


def chosen_name(tool_choice: Any) -> str | None:
    """The tool that has to be called, None if any may; SchemaError for what is no choice."""
    if tool_choice in ("auto", "required"):
        return None
    if isinstance(tool_choice, Mapping):
        function = tool_choice.get("function", tool_choice)
        tool_choice = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(tool_choice, str) or tool_choice == "none":
        raise SchemaError(
            "tool_choice must be 'auto', 'required', a tool's name or {'type': 'function', 'function': {'name': ...}}, "
            f"not {shown(tool_choice)}; at $"
        )
    return tool_choice


def _call(tool: ToolSchema, arguments: str, before: str = "", after: str = "") -> Format:
    begin = f'{before}{{"name": {json.dumps(tool.name, ensure_ascii=False)}, "{arguments}": '
    schema = tool.schema
    if isinstance(schema, dict) and "type" not in schema:
        schema = {"type": "object", **schema}
    content = {"type": "json_schema", "json_schema": schema if isinstance(schema, dict) else {"type": "object"}}
    return {"type": "tag", "begin": begin, "content": content, "end": "}" + after}


def _hermes(tools: Sequence[ToolSchema], must: bool, parallel: bool, has_token: Callable[[str], bool]) -> Format:
    trigger = "<tool_call>"
    tags = [_call(tool, "arguments", f"{trigger}\n", "\n</tool_call>") for tool in tools]
    if must:
        return {
            "type": "tags_with_separator", "tags": tags, "separator": "\n", "at_least_one": True,
            "stop_after_first": not parallel,
        }  # fmt: skip
    return {"type": "triggered_tags", "triggers": [trigger], "tags": tags, "stop_after_first": not parallel}


def _llama3(tools: Sequence[ToolSchema], must: bool, parallel: bool, has_token: Callable[[str], bool]) -> Format:
    calls: Format = {
        "type": "tags_with_separator", "tags": [_call(tool, "parameters") for tool in tools], "separator": "; ",
        "at_least_one": True, "stop_after_first": not parallel,
    }  # fmt: skip
    if has_token("<|python_tag|>"):
        calls = _sequence({"type": "optional", "content": {"type": "token", "token": "<|python_tag|>"}}, calls)
    # An answer that begins with a brace is a call.
    text = {"type": "regex", "pattern": r"([^{\s][\s\S]*)?"}
    return calls if must else {"type": "or", "elements": [calls, text]}


def _mistral(tools: Sequence[ToolSchema], must: bool, parallel: bool, has_token: Callable[[str], bool]) -> Format:
    begin = "[TOOL_CALLS]"
    tags = [_call(tool, "arguments") for tool in tools]
    listed = {
        "type": "tags_with_separator", "tags": tags, "separator": ", ", "at_least_one": True,
        "stop_after_first": not parallel,
    }  # fmt: skip
    calls = _sequence(_constant("["), listed, _constant("]"))
    if has_token(begin):
        called = _sequence({"type": "token", "token": begin}, calls)
        return called if must else _sequence({"type": "any_text"}, {"type": "optional", "content": called})
    if must:
        return _sequence(_constant(begin), calls)
    return {"type": "dispatch", "rules": [[begin, calls]], "loop": False}


def _sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def _constant(text: str) -> Format:
    return {"type": "const_string", "value": text}


FORMATS: Mapping[str, Callable[[Sequence[ToolSchema], bool, bool, Callable[[str], bool]], Format]] = {
    "hermes": _hermes, "qwen": _hermes, "llama3": _llama3, "mistral": _mistral,
}  # fmt: skip
