"""Tool calls of an answer as Python values: what a constraint of :func:`wfsa.compile_tools` let a model write, read.

    calls = constraint.calls(text)               or read_calls(text, tools, format="hermes") without a constraint
    for call in calls:
        call.function(**call.arguments)          dates, enums and models where the annotations say so
    calls.content                                the text around the calls
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from wfsa.errors import DecodingError, WfsaError
from wfsa.grammar.json_schema import SchemaOptions, SchemaSource
from wfsa.grammar.json_schema.read.python_types import is_function, is_type, type_reader
from wfsa.grammar.json_schema.read.sources import from_text, to_text
from wfsa.grammar.json_schema.tools import ToolSchema, listed_tools
from wfsa.grammar.structural_tag.calls import WrittenCall, read_written_calls
from wfsa.grammar.structural_tag.tools import FORMATS, require_format

_THOUGHT = ("<think>", "</think>")


@dataclass(frozen=True)
class Call:
    """A call of one tool.

    name: the tool's.
    json_arguments: the arguments as JSON values: dicts, lists, str, int, float, bool, None.
    text: the call as it was written.
    function: what was given as the tool if it can be called and is no type; else None.
    """

    name: str
    json_arguments: dict[str, Any]
    text: str
    function: Callable[..., Any] | None = None
    _kind: Any = None

    @cached_property
    def arguments(self) -> Any:
        """The arguments as the tool's types say.

        A tool that is a function has a dict for ``function(**arguments)``, with defaults. One that is a pydantic model,
        a dataclass or another type has a value of it. One that is a JSON Schema has ``json_arguments``.
        Raises pydantic.ValidationError, a ValueError, where a validator of the types refuses what the schema takes.
        """
        if self._kind is None:
            return self.json_arguments
        return type_reader(self._kind)(json.dumps(self.json_arguments))


class Calls(list[Call]):
    """The calls of an answer, in their order.

    content: the text outside of the calls, without white space at its ends.
    reasoning: where that text has ``</think>``, what is in front of it; else "". It is not part of `content`.
    """

    def __init__(self, calls: list[Call], outside: str = "") -> None:
        super().__init__(calls)
        before, mark, after = outside.partition(_THOUGHT[1])
        self.reasoning = before.strip().removeprefix(_THOUGHT[0]).strip() if mark else ""
        self.content = (after if mark else outside).strip()


@dataclass(frozen=True, slots=True)
class CallReader:
    """Reads calls of some tools in one format, one of `FORMATS`; None for one call as JSON."""

    tools: tuple[ToolSchema, ...]
    format: str | None
    options: SchemaOptions

    def read(self, text: str | bytes) -> Calls:
        """What :func:`read_calls` returns."""
        if isinstance(text, (bytes, bytearray)):
            text = text.decode("utf-8", "replace")
        if not isinstance(text, str):
            raise DecodingError(f"calls are read from a text, str or bytes, not {type(text).__name__}")
        written = read_written_calls(text, self.tools, self.format, self.options)
        return Calls([_call(one, text) for one in written.calls], "".join(written.outside))

    def to_data(self) -> dict[str, Any]:
        """What is needed to read calls, as JSON values; Python types are not."""
        is_needed = self.format is not None and FORMATS[self.format].style != "json"
        schemas = [to_text(SchemaSource(tool.schema, self.options)) if is_needed else None for tool in self.tools]
        names = [tool.name for tool in self.tools]
        return {"format": self.format, "tools": [list(pair) for pair in zip(names, schemas, strict=True)]}

    @staticmethod
    def of_data(data: Any) -> CallReader:
        """The inverse of :meth:`to_data`; ValueError for anything else."""
        try:
            form, options, tools = data["format"], SchemaOptions(), []
            if form is not None:
                require_format(form)
            for name, text in data["tools"]:
                source = None if text is None else from_text(text)
                if not isinstance(name, str):
                    raise ValueError("a name is no text")
                options = options if source is None else source.options
                tools.append(ToolSchema(name, True if source is None else source.schema, "$", ""))
        except (KeyError, TypeError, RecursionError, WfsaError) as error:
            raise ValueError(f"no tools: {error}") from None
        return CallReader(tuple(tools), form, options)


def _call(written: WrittenCall, text: str) -> Call:
    given = written.tool.kind
    function = given if is_function(given) or (callable(given) and not is_type(given)) else None
    kind = given if given is None or is_type(given) else given.__call__
    return Call(written.tool.name, written.arguments, text[written.begin : written.end], function, kind)


def read_calls(
    text: str | bytes, tools: Any, *, format: str | None = None, schema_options: SchemaOptions | None = None
) -> Calls:
    """Read the tool calls of an answer that was written under :func:`wfsa.compile_tools` with the same arguments.

    ``constraint.calls(text)`` does the same.  This function is for texts without their constraint, and gives Python
    types to the calls of a constraint that was loaded from a file.

    text: the answer, with the marks of the calls (special tokens among them), without its end token.
    tools, format: as for :func:`wfsa.compile_tools`.
    schema_options: those of compile_tools; they matter only where they change what a schema takes.

    Returns a list of :class:`Call`: ``name``, ``arguments``, ``function``. Its ``content`` and ``reasoning`` are the
    text around the calls.
    Raises DecodingError for a call that is cut off, or is none that the constraint allows; SchemaError for wrong tools.
    """
    if format is not None:
        require_format(format)
    return CallReader(tuple(listed_tools(tools)), format, schema_options or SchemaOptions()).read(text)
