"""Reads the calls in a text: the inverse of the grammars that :mod:`.tools` makes.

Every text under a constraint of tools can be read, in every format.  If a mark occurs in a string of the arguments, the
JSON around it shows where the string ends; so marks are never searched for in JSON.  In XML-like styles no value
contains its end (:mod:`.arguments`).

    a format with an opening    text up to the opening, then calls with separators, then the closing
    others                      text in which each call begins where the trigger first occurs
    "llama3"                    the whole text is calls, or has none
    no format                   one JSON object: the name and the arguments
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wfsa.errors import DecodingError

from ..json_schema.options import SchemaOptions
from ..json_schema.tools import ToolSchema
from .tools import FORMATS, PYTHON_TAG, CallFormat, trigger_of
from .xml_styles import STYLES
from .xml_values import WHITE, Cursor, read_json_value, read_xml_arguments


class WrittenCall(NamedTuple):
    """A call in a text: the tool, its arguments as JSON values, and the range of its characters."""

    tool: ToolSchema
    arguments: dict[str, Any]
    begin: int
    end: int


class WrittenCalls(NamedTuple):
    """The calls in a text, in order, and the pieces of text outside the calls and their marks."""

    calls: list[WrittenCall]
    outside: list[str]


def read_written_calls(
    text: str, tools: Sequence[ToolSchema], form: str | None, options: SchemaOptions
) -> WrittenCalls:
    """Read the calls in a text.

    form: one of `FORMATS`; None for one call as JSON.  options: those with which the schemas were compiled.
    Raises DecodingError, with the place, for a call that is incomplete or not in the format.
    """
    if form is None:
        return WrittenCalls([_plain_call(text, tools)], [])
    reader = _Reader(text, tools, FORMATS[form], options)
    if form == "llama3":
        return reader.llama3()
    return reader.in_section() if FORMATS[form].opening else reader.triggered()


def _plain_call(text: str, tools: Sequence[ToolSchema]) -> WrittenCall:
    cursor = Cursor(text)
    value = read_json_value(cursor)
    if cursor.at < len(text) or not isinstance(value, dict) or not isinstance(value.get("arguments"), dict):
        raise DecodingError(
            f"a call must be an object with a name and arguments, not {text[:80]!r}; the text may be cut off"
        )
    for tool in tools:
        if tool.name == value.get("name"):
            return WrittenCall(tool, value["arguments"], 0, len(text))
    raise DecodingError(f"the call has the name {value.get('name')!r}; the tools are {_names(tools)}")


def _names(tools: Sequence[ToolSchema]) -> str:
    return ", ".join(tool.name for tool in tools)


class _Reader:
    def __init__(self, text: str, tools: Sequence[ToolSchema], form: CallFormat, options: SchemaOptions) -> None:
        self.cursor, self.form, self.options = Cursor(text), form, options
        begins = [
            ((json.dumps(t.name, ensure_ascii=False) if form.is_quoted else t.name) + form.after_name, t) for t in tools
        ]  # fmt: skip
        self.begins = sorted(begins, key=lambda one: -len(one[0]))  # a name may begin with another
        self.tools = tools

    def in_section(self) -> WrittenCalls:
        cursor, form = self.cursor, self.form
        begin = cursor.text.find(form.opening)
        if begin < 0:
            return WrittenCalls([], [cursor.text])
        cursor.at = begin + len(form.opening)
        calls = list(self.row(form.closing))
        cursor.take(form.closing)
        return WrittenCalls(calls, [cursor.text[:begin], cursor.text[cursor.at :]])

    def triggered(self) -> WrittenCalls:
        cursor, trigger = self.cursor, trigger_of(self.form)
        calls, pieces, done = [], [], 0
        while (begin := cursor.text.find(trigger, done)) >= 0:
            pieces.append(cursor.text[done:begin])
            cursor.at = begin
            calls.append(self.call())
            done = cursor.at
        return WrittenCalls(calls, [*pieces, cursor.text[done:]])

    def llama3(self) -> WrittenCalls:
        cursor = self.cursor
        text = cursor.text
        is_tagged = cursor.has(PYTHON_TAG)
        if is_tagged:
            cursor.take(PYTHON_TAG)
        if not cursor.has("{"):
            return WrittenCalls([], [text])
        try:
            return WrittenCalls(list(self.row("")), [text[cursor.at :]])
        except DecodingError:
            if is_tagged:  # a text may also begin with the tag
                return WrittenCalls([], [text])
            raise

    def row(self, closing: str) -> Iterator[WrittenCall]:
        """Read calls with separators between them, up to the closing, or as long as there are any."""
        yield self.call()
        while not self.cursor.has(closing) if closing else self.cursor.has(self.form.separator + self.form.begin):
            self.cursor.take(self.form.separator)
            yield self.call()

    def call(self) -> WrittenCall:
        cursor, form = self.cursor, self.form
        begin = cursor.at
        cursor.take(form.begin)
        name_start = cursor.at
        failed: DecodingError | None = None
        for written, tool in self.begins:
            if cursor.has(written):
                cursor.at = name_start + len(written)
                try:
                    return WrittenCall(tool, self.arguments(tool), begin, cursor.at)
                except DecodingError as error:
                    failed = failed or error
                    cursor.at = name_start
        if failed is not None:
            raise failed
        cursor.fail(f"the name of a tool is missing ({_names(self.tools)})")

    def arguments(self, tool: ToolSchema) -> dict[str, Any]:
        """Read the arguments of a call, including the end of the call."""
        cursor, form = self.cursor, self.form
        end = form.end.lstrip(WHITE)  # white space before it is read with the arguments
        if form.after_index:
            cursor.until(form.after_index)
        if form.style != "json":
            return read_xml_arguments(cursor, STYLES[form.style], end, tool.schema, self.options)
        value = read_json_value(cursor)
        if not isinstance(value, dict):
            cursor.fail("arguments must be an object")
        cursor.take(end)
        return value
