r"""Tool calls as models write them: a list of tools and a format of calls become a structural tag.

`FORMATS` has the formats under the names of vLLM's tool parsers.  Sources: the chat templates of the models, and those
parsers.  The begin or end of a call may be a special token of the vocabulary; :mod:`.lowering` handles that.

    tool_choice   "auto": text, and calls where one begins; "required": calls; the name of a tool: calls of this tool;
                  "none": text in which no call begins
    parallel      whether there can be several calls
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from wfsa.errors import SchemaError

from ..boundary import Boundary
from ..json_schema.read.keywords import shown
from ..json_schema.tools import ToolSchema, listed_tools

Format = dict[str, Any]
PYTHON_TAG = "<|python_tag|>"  # optional before llama3's calls
_LLAMA3_TEXT = r"([^{\s][\s\S]*)?"  # an answer that begins with a brace is a call


class CallFormat(NamedTuple):
    """How calls are written: `begin`, the tool's name, `after_name`, the arguments, `end`.

    is_quoted: whether the name is a JSON string.  opening, closing: around all calls of an answer.  lead: before the
    opening, if no text precedes it.  style: the style of the arguments.  after_index: calls are numbered after
    `after_name`, and this is between the number and the arguments.
    marks: strings that no argument contains, since readers would take them for the begin or end of a call.
    not_in_names: strings that an unquoted name must not contain, since readers would take them for the name's end.
    """

    begin: str
    after_name: str
    end: str
    separator: str = ""
    opening: str = ""
    closing: str = ""
    lead: str = ""
    style: str = "json"
    after_index: str = ""
    is_quoted: bool = False
    marks: tuple[str, ...] = ()
    not_in_names: tuple[str, ...] = ("<", ">", '"', "\n")


_HERMES = CallFormat(
    '<tool_call>\n{"name": ', ', "arguments": ', "}\n</tool_call>", "\n", is_quoted=True,
    marks=("<tool_call>", "</tool_call>"),
)  # fmt: skip
_DEEPSEEK_MARKS = (
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>",
)  # fmt: skip
FORMATS: Mapping[str, CallFormat] = {
    "hermes": _HERMES,  # Hermes 2 Pro
    "qwen": _HERMES,  # Qwen 2.5 and 3
    "qwen3_coder": CallFormat(
        "<tool_call>\n<function=", ">\n", "\n</function>\n</tool_call>", "\n", style="qwen_xml",
        marks=("<tool_call>", "<function=", "</function>", "</tool_call>"),
    ),
    # Llama 3.1; at the beginning of an answer, see `_llama3`
    "llama3": CallFormat(
        '{"name": ', ', "parameters": ', "}", "; ", is_quoted=True, marks=("<|python_tag|>",)
    ),
    "mistral": CallFormat(  # up to 7B v0.3
        '{"name": ', ', "arguments": ', "}", ", ", "[TOOL_CALLS][", "]", is_quoted=True, marks=("[TOOL_CALLS]",)
    ),
    "mistral_v11": CallFormat(
        "[TOOL_CALLS]", "[ARGS]", "", marks=("[TOOL_CALLS]", "[ARGS]"), not_in_names=("[", "{", " ", "\n")
    ),
    "granite": CallFormat(  # 3
        '{"name": ', ', "arguments": ', "}", ", ", "<|tool_call|>[", "]", is_quoted=True, marks=("<|tool_call|>",)
    ),
    "deepseek_v3": CallFormat(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>", "\n",
        "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", marks=_DEEPSEEK_MARKS,
    ),
    "deepseek_v31": CallFormat(
        "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "",
        "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", marks=_DEEPSEEK_MARKS,
    ),
    "deepseek_v32": CallFormat(
        '<｜DSML｜invoke name="', '">\n', "</｜DSML｜invoke>\n", "",
        "<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>", "\n\n", "deepseek_xml",
        marks=("<｜DSML｜invoke name=", "</｜DSML｜invoke>", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    ),
    "kimi_k2": CallFormat(
        "<|tool_call_begin|>functions.", ":", "<|tool_call_end|>", "",
        "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", after_index="<|tool_call_argument_begin|>",
        marks=(
            "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>",
            "<|tool_call_argument_begin|>",
        ),
        not_in_names=("<", ":", ".", "\n"),
    ),
    "glm47": CallFormat(
        "<tool_call>", "", "</tool_call>", style="glm_xml", marks=("<tool_call>", "</tool_call>"),
        not_in_names=("<", "\n"),
    ),
    "minimax_m2": CallFormat(
        '<invoke name="', '">\n', "</invoke>\n", "",
        "<minimax:tool_call>\n", "</minimax:tool_call>", "\n", "minimax_xml",
        marks=("<invoke name=", "</invoke>", "<minimax:tool_call>", "</minimax:tool_call>"),
    ),
    "minimax_m3": CallFormat(
        ']<]minimax[>[<invoke name="', '">', "]<]minimax[>[</invoke>\n", "",
        "]<]minimax[>[<tool_call>\n", "]<]minimax[>[</tool_call>", "", "minimax_m3_xml",
    ),
}  # fmt: skip


@Boundary(SchemaError)
def tools_tag(tools: Any, tool_choice: Any, parallel: bool, form: str) -> Format:
    """Return the structural tag of answers with calls.

    `tool_choice`: "auto", "required", "none", a name, or OpenAI's ``{"type": "function", "function": {"name": ...}}``.
    Raises SchemaError for an invalid list of tools, a choice that is not in the list, and an unknown format.
    """
    require_format(form)
    listed = listed_tools(tools)
    if tool_choice == "none":
        return _no_calls(form)
    name = chosen_name(tool_choice)
    if name is not None:
        listed = [tool for tool in listed if tool.name == name]
        if not listed:
            raise SchemaError(f"tool_choice names the tool {shown(name)}, which is not in the list; at $")
    must = name is not None or tool_choice == "required"
    if form == "llama3":
        return _llama3(listed, must, parallel)
    return _written(FORMATS[form], listed, must, parallel)


def require_format(form: Any) -> None:
    """Raise SchemaError if the value is not one of `FORMATS`."""
    if not isinstance(form, str) or form not in FORMATS:
        raise SchemaError(f"the format {shown(form)} of tool calls is not known; known are {', '.join(FORMATS)}; at $")


def chosen_name(tool_choice: Any) -> str | None:
    """Return the tool that must be called, or None if any tool may be.  Raises SchemaError for an invalid choice."""
    if tool_choice in ("auto", "required"):
        return None
    if isinstance(tool_choice, Mapping):
        function = tool_choice.get("function", tool_choice)
        tool_choice = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(tool_choice, str):
        raise SchemaError(
            "tool_choice must be 'auto', 'required', 'none', a tool's name or "
            f"{{'type': 'function', 'function': {{'name': ...}}}}, not {shown(tool_choice)}; at $"
        )
    return tool_choice


def _tag(tool: ToolSchema, form: CallFormat) -> Format:
    content: Format = {
        "type": "arguments", "json_schema": tool.schema, "style": form.style, "excludes": list(form.marks),
    }  # fmt: skip
    if form.after_index:
        index = {"type": "regex", "pattern": "[0-9]{1,6}"}
        content = _sequence(index, _constant(form.after_index), content)
    name = json.dumps(tool.name, ensure_ascii=False) if form.is_quoted else _plain_name(tool, form)
    for mark in form.marks:
        if mark in name:
            _refuse_name(tool, f"a name must not contain {mark!r}")
    return {"type": "tag", "begin": form.begin + name + form.after_name, "content": content, "end": form.end}


def _plain_name(tool: ToolSchema, form: CallFormat) -> str:
    """Return a name as it is written; raises SchemaError for a name that readers would not read back."""
    if not tool.name or tool.name != tool.name.strip():
        _refuse_name(tool, "a name must not be empty or have white space at its ends")
    for mark in form.not_in_names:
        if mark in tool.name:
            _refuse_name(tool, f"a name must not contain {mark!r}")
    return tool.name


def _refuse_name(tool: ToolSchema, why: str) -> NoReturn:
    raise SchemaError(f"the tool {shown(tool.name)} has no spelling in this format: {why}; rename it at {tool.path}")


def _calls(form: CallFormat, tools: Sequence[ToolSchema], parallel: bool) -> Format:
    return {
        "type": "tags_with_separator", "tags": [_tag(tool, form) for tool in tools], "separator": form.separator,
        "at_least_one": True, "stop_after_first": not parallel,
    }  # fmt: skip


def _written(form: CallFormat, tools: Sequence[ToolSchema], must: bool, parallel: bool) -> Format:
    calls = _calls(form, tools, parallel)
    if form.opening:
        after_opening = _sequence(calls, _constant(form.closing))
        if must:
            return _sequence(_constant(form.lead + form.opening), after_opening)
        return {"type": "dispatch", "rules": [[form.opening, after_opening]], "loop": False}
    if must:
        return calls
    return {
        "type": "triggered_tags", "triggers": [trigger_of(form)], "tags": calls["tags"],
        "stop_after_first": not parallel,
    }  # fmt: skip


def trigger_of(form: CallFormat) -> str:
    """Return the text at which a call begins, in a format without an opening."""
    trigger = re.match(r"[^>\]]*[>\]]", form.begin)
    assert trigger is not None
    return trigger[0]


def _no_calls(form: str) -> Format:
    if form == "llama3":
        return {"type": "regex", "pattern": rf"(?!{re.escape(PYTHON_TAG)}){_LLAMA3_TEXT}"}
    written = FORMATS[form]
    return {"type": "any_text", "excludes": [written.opening or trigger_of(written)]}


def _llama3(tools: Sequence[ToolSchema], must: bool, parallel: bool) -> Format:
    tag = {"type": "optional", "content": _constant(PYTHON_TAG)}
    calls = _sequence(tag, _calls(FORMATS["llama3"], tools, parallel))
    text = {"type": "regex", "pattern": _LLAMA3_TEXT}
    return calls if must else {"type": "or", "elements": [calls, text]}


def _sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def _constant(text: str) -> Format:
    return {"type": "const_string", "value": text}
