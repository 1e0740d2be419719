"""The XML-like styles in which models write the arguments of a call: a begin and an end round each property.

    qwen_xml             <parameter=KEY>VALUE</parameter>
    minimax_xml          <parameter name="KEY">VALUE</parameter>
    minimax_m3_xml       ]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>
    deepseek_xml         <｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>
    deepseek_v4_1_xml    <｜DSML｜ parameter name="KEY" string="true">VALUE</｜DSML｜ parameter>
    glm_xml              <arg_key>KEY</arg_key><arg_value>VALUE</arg_value>
    kimi_k3_xml          <|open|>argument key="KEY" type="string"<|sep|>VALUE<|close|>argument<|sep|>
    cohere_xml           <cofl:value name="KEY" type="raw">VALUE</cofl:value>

A VALUE of the type string is the text itself there, which ends where its end first occurs; any other is JSON, and
``string`` is "false" then, ``type`` the type ("number" for integers).  In minimax_m3_xml and cohere_xml objects and
arrays are written in the style again, items under the name ``item`` and without a name; cohere's types are raw, json,
dict and list.  In qwen_xml one newline after the begin and one in front of the end are no part of a text.

Source of the styles: XGrammar's documentation of structural tags and the grammars it makes, the chat templates of the
models, and the parsers of vLLM and SGLang, which read what is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..regular import ANY_TEXT, Literal, Regular, alt, cat, minus

_TYPES = ("string", "number", "boolean", "null", "array", "object")


@dataclass(frozen=True, slots=True)
class Style:
    """How a property is written: `key`, its name, `after_key`, then `value` if types are told, the value, its end.

    types: what is told for each type of JSON, between `after_key` and `value`; empty if nothing is.
    stop, tail: the end: what ends a value, and the rest, with NAME for the name.
    bars: what values do not hold besides `stop`, since readers look for it.
    not_in_names: what a name cannot hold, since readers would take it for the name's end.
    escapes: how some characters are written in names.
    item: the key of an item, where objects and arrays are nested in the style.
    trims: whether one newline at either end is no part of a text.
    """

    key: str
    after_key: str
    stop: str
    tail: str = ""
    value: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    bars: tuple[str, ...] = ()
    not_in_names: tuple[str, ...] = ("<", ">", "\n")
    escapes: Mapping[str, str] = field(default_factory=dict)
    item: str | None = None
    trims: bool = False

    def spelled(self, name: str) -> str:
        """A name as it is written."""
        return "".join(self.escapes.get(c, c) for c in name)

    def misread(self, name: str) -> str | None:
        """Why a reader would not read a name back; None if it does."""
        if not name or name != name.strip():
            return "a name is not empty and has no white space at its ends"
        return next((f"a name cannot hold {mark!r}" for mark in self.not_in_names if mark in name), None)


def _dsml(space: str) -> Style:
    types = {kind: "true" if kind == "string" else "false" for kind in _TYPES}
    return Style(
        f'<｜DSML｜{space}parameter name="', '" string="', f"</｜DSML｜{space}parameter>", value='">', types=types,
        bars=(f"<｜DSML｜{space}parameter name=",), not_in_names=('"', "<", ">", "\n"),
    )  # fmt: skip


_QUOTED = {"&": "&amp;", '"': "&quot;"}
STYLES: Mapping[str, Style] = {
    "qwen_xml": Style(
        "<parameter=", ">", "</parameter>", bars=("<parameter=", "</function>"), trims=True, not_in_names=(">", "\n")
    ),
    "minimax_xml": Style(
        '<parameter name="', '">', "</parameter>", bars=("<parameter name=", "</invoke>"),
        not_in_names=('"', ">", "\n"),
    ),
    "minimax_m3_xml": Style(
        "]<]minimax[>[<", ">", "]<]minimax[>[", "</NAME>", item="item", not_in_names=(">", "/", "]<]", "\n")
    ),
    "deepseek_xml": _dsml(""),
    "deepseek_v4_1_xml": _dsml(" "),
    "glm_xml": Style(
        "<arg_key>", "</arg_key><arg_value>", "</arg_value>", bars=("</tool_call>",), not_in_names=("</arg_key>", "\n")
    ),
    "kimi_k3_xml": Style(
        '<|open|>argument key="', '" type="', "<|close|>argument<|sep|>", value='"<|sep|>',
        types={kind: kind for kind in _TYPES}, escapes=_QUOTED, not_in_names=("<|", "\n"),
    ),
    "cohere_xml": Style(
        '<cofl:value name="', '" type="', "</cofl:value>", value='">',
        types={
            "string": "raw", "object": "dict", "array": "list",
            **dict.fromkeys(("number", "boolean", "null"), "json"),
        },
        escapes={**_QUOTED, "<": "&lt;", ">": "&gt;"}, item='<cofl:value type="', not_in_names=("\n",),
    ),
}  # fmt: skip

_NEWLINE = Literal(b"\n")


def untrimmed(texts: Regular) -> Regular:
    """What is read as one of `texts` by readers that drop one newline at either end."""
    in_front, behind = cat(_NEWLINE, ANY_TEXT), cat(ANY_TEXT, _NEWLINE)
    return alt(
        cat(_NEWLINE, texts, _NEWLINE), cat(_NEWLINE, minus(texts, behind)), cat(minus(texts, in_front), _NEWLINE),
        minus(texts, alt(in_front, behind)),
    )  # fmt: skip
