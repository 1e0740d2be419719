"""Arguments of a call in the XML-like styles of models: a begin and an end round each property of an object.

    qwen_xml             <parameter=KEY>VALUE</parameter>
    minimax_xml          <parameter name="KEY">VALUE</parameter>
    deepseek_xml         <｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>
    deepseek_v4_1_xml    <｜DSML｜ parameter name="KEY" string="true">VALUE</｜DSML｜ parameter>
    glm_xml              <arg_key>KEY</arg_key><arg_value>VALUE</arg_value>

A VALUE of the type string is the text itself, which ends where its end first occurs; any other is JSON (``string`` is
"false" then).  Between, and round JSON, stands white space of at most `MAX_SPACE` characters.

Taken are objects with ``properties`` and ``required``; names that the schema does not list only where it has
``additionalProperties`` that is true or a schema.  Of a string's keywords ``enum``, ``const``, ``minLength``,
``maxLength``, ``format`` and ``pattern`` count; a pattern has to be anchored.
Source of the styles: XGrammar's documentation of structural tags, and the chat templates of the models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wfsa.grammar.expressions import Choice, Expr, Many, Seq
from wfsa.grammar.json_schema.formats import format_language, format_name
from wfsa.grammar.json_schema.keywords import shown
from wfsa.grammar.regular import (
    ANY_CHAR,
    EPSILON,
    ByteSet,
    Chars,
    Regular,
    alt,
    both,
    cat,
    literal,
    negate_ranges,
    optional,
    plus,
    repeat,
)
from wfsa.grammar.structural_tag.fields import fail
from wfsa.grammar.structural_tag.free_text import text_until

MAX_SPACE = 20
_SPACE = repeat(ByteSet(((9, 10), (13, 13), (32, 32))), 0, MAX_SPACE)


class Style(NamedTuple):
    """What stands in front of a name, behind it (by whether the value is text), and behind the value.

    `around`: what may stand round a text and is not part of it.
    """

    before: str
    text: str
    json: str
    after: str
    around: Regular = EPSILON

    def begin(self, name: str, is_text: bool) -> str:
        return f"{self.before}{name}{self.text if is_text else self.json}"


STYLES: Mapping[str, Style] = {
    "qwen_xml": Style("<parameter=", ">", ">", "</parameter>", optional(literal("\n"))),
    "minimax_xml": Style('<parameter name="', '">', '">', "</parameter>"),
    "deepseek_xml": Style(
        '<｜DSML｜parameter name="', '" string="true">', '" string="false">', "</｜DSML｜parameter>"
    ),
    "deepseek_v4_1_xml": Style(
        '<｜DSML｜ parameter name="', '" string="true">', '" string="false">', "</｜DSML｜ parameter>"
    ),
    "glm_xml": Style("<arg_key>", "</arg_key><arg_value>", "</arg_key><arg_value>", "</arg_value>"),
}
Documents = Callable[[Any, str], Expr]  # those of a schema, at a place
Pattern = Callable[[str, str], Expr]  # the words of one, at a place


def arguments(schema: Any, path: str, style: Style, any_order: bool, documents: Documents, pattern: Pattern) -> Expr:
    """The texts of an object's properties.  `documents` and `pattern` make what is no text of its own.

    Raises SchemaError for what a style cannot say.
    """
    if schema is True:
        schema = {"additionalProperties": True}
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        fail(path, f"an XML style writes the properties of an object, not {shown(schema)}")
    for keyword in schema:
        if keyword in ("allOf", "anyOf", "oneOf", "$ref", "patternProperties", "minProperties", "maxProperties", "if"):
            fail(f"{path}.{keyword}", f"an XML style takes properties, required and additionalProperties, no {keyword}")
    properties, required = schema.get("properties", {}), schema.get("required", [])
    shared = {key: schema[key] for key in ("$defs", "definitions", "$schema") if key in schema}

    def value(of: Any, place: str) -> tuple[Expr, bool]:
        end = style.after.encode()
        text = _text(of, place, style, pattern)
        if text is not None:
            return text, True
        whole = {**shared, **of} if isinstance(of, dict) else of
        return Seq((documents(whole, place), _SPACE, literal(end))), False  # they begin with white space themselves

    entries: list[tuple[Expr, bool]] = []
    for name, of in properties.items():
        written, is_text = value(of, f"{path}.properties.{name}")
        entry = Seq((_SPACE, literal(style.begin(name, is_text)), written))
        entries.append((entry, name in required))
    missing = [name for name in required if name not in properties]
    if missing:
        fail(f"{path}.required", f"the property {shown(missing[0])} is required and not listed in properties")
    others = _others(schema, path, style, value)
    if any_order:
        some: list[Expr] = [entry for entry, _ in entries] + ([] if others is None else [others])
        body: Expr = Many(Choice(tuple(some)), len(required), None) if some else EPSILON
    else:
        body = Seq(tuple(entry if needed else Many(entry, 0, 1) for entry, needed in entries))
        if others is not None:
            body = Seq((body, Many(others, 0, None)))
    return Seq((body, _SPACE))


def _others(
    schema: dict[str, Any], path: str, style: Style, value: Callable[[Any, str], tuple[Expr, bool]]
) -> Expr | None:
    """A property that is not listed, None if there are none."""
    of = schema.get("additionalProperties", False)
    if of is False:
        return None
    if of is True:
        of = {}
    name = plus(Chars(negate_ranges([(ord(c), ord(c)) for c in '"<>=&\n'])))
    kinds: list[Expr] = []
    for kind in ([of] if of else [{"type": "string"}, {"type": ["number", "boolean", "null", "array", "object"]}]):
        written, is_text = value(kind, f"{path}.additionalProperties")
        begin = cat(literal(style.before), name, literal(style.text if is_text else style.json))
        kinds.append(Seq((_SPACE, begin, written)))
    return kinds[0] if len(kinds) == 1 else Choice(tuple(kinds))


def _text(of: Any, path: str, style: Style, pattern: Pattern) -> Expr | None:
    """The text of a value that is a string, with its end; None if the value is JSON."""
    if not isinstance(of, dict):
        return None
    end = style.after.encode()
    values = of.get("enum", [of["const"]] if "const" in of else None)
    if values is not None and all(isinstance(one, str) for one in values):
        return Seq((alt(*(literal(one) for one in values)), literal(end)))
    if of.get("type") != "string" or values is not None:
        return None
    low, high = _length(of, "minLength", path) or 0, _length(of, "maxLength", path)
    name = format_name(of["format"], 2020) if isinstance(of.get("format"), str) else None
    bounds = [] if name is None else [format_language(name)]
    if low or high is not None:
        bounds.append(repeat(ANY_CHAR, low, high))
    if "pattern" not in of:
        bounds = [cat(style.around, bound, style.around, literal(end)) for bound in bounds]
        return both(text_until(end, frozenset()), *bounds)
    if bounds:
        fail(f"{path}.pattern", "a string in an XML style has a pattern, or lengths and a format, not both")
    if not (isinstance(of["pattern"], str) and of["pattern"].startswith("^") and of["pattern"].endswith("$")):
        fail(f"{path}.pattern", "the pattern of a string in an XML style is anchored: ^...$")
    return Seq((pattern(of["pattern"], f"{path}.pattern"), literal(end)))


def _length(of: dict[str, Any], keyword: str, path: str) -> int | None:
    value = of.get(keyword)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        fail(f"{path}.{keyword}", f"{keyword} must be a number of characters, not {shown(value)}")
    return value
