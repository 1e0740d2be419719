"""Arguments of a call in the XML-like styles of models: a begin and an end round each property of an object.

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
dict and list.  Between, and round JSON, stands white space of at most `MAX_SPACE` characters.

Taken are objects with ``properties`` and ``required``; names that the schema does not list only where it has
``additionalProperties`` that is true or a schema.  Values may be alternatives (``anyOf``, a list of types, ``oneOf`` of
different types).  Of a string's keywords ``enum``, ``const``, ``minLength``, ``maxLength``, ``format`` and ``pattern``
count; a pattern has to be anchored.
Source of the styles: XGrammar's documentation of structural tags and the grammars it makes, and the chat templates of
the models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol
from xml.sax.saxutils import escape

from wfsa.grammar.expressions import Choice, Expr, Many, Ref, Seq
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

MAX_SPACE = 20
_SPACE = repeat(ByteSet(((9, 10), (13, 13), (32, 32))), 0, MAX_SPACE)
_TYPES = ("string", "number", "boolean", "null", "array", "object")
_NOTES = frozenset({"title", "description", "default", "examples", "deprecated", "$comment", "$schema", "$defs",
                    "definitions", "discriminator"})  # fmt: skip
_UNTAKEN = ("allOf", "anyOf", "oneOf", "$ref", "patternProperties", "minProperties", "maxProperties", "if")


class Style(NamedTuple):
    """What stands in front of a value, and behind it; NAME and TYPE in it are of the value.

    types: what TYPE is for each type of JSON.  stop: what ends a text, if that is not all of `end`.  around: what may
    stand round a text and is not part of it.  item: the begin of an item, where values are nested in the style.
    """

    begin: str
    end: str
    types: Mapping[str, str] = {}
    stop: str = ""
    around: Regular = EPSILON
    item: str | None = None

    def ends(self, name: str) -> tuple[str, str]:
        """The end of the value of this name: what ends a text, and the rest."""
        end, stop = self.end.replace("NAME", name), self.stop or self.end
        return stop, end[len(stop) :]

    def spelled(self, name: str) -> str:
        """A name as it stands in an attribute."""
        is_xml = self.item is not None and "NAME" not in self.end
        return escape(name, {'"': "&quot;"}) if is_xml else name


def _dsml(space: str) -> Style:
    types = {kind: "true" if kind == "string" else "false" for kind in _TYPES}
    return Style(f'<｜DSML｜{space}parameter name="NAME" string="TYPE">', f"</｜DSML｜{space}parameter>", types)


STYLES: Mapping[str, Style] = {
    "qwen_xml": Style("<parameter=NAME>", "</parameter>", around=optional(literal("\n"))),
    "minimax_xml": Style('<parameter name="NAME">', "</parameter>"),
    "minimax_m3_xml": Style(
        "]<]minimax[>[<NAME>", "]<]minimax[>[</NAME>", stop="]<]minimax[>[", item="]<]minimax[>[<item>"
    ),
    "deepseek_xml": _dsml(""),
    "deepseek_v4_1_xml": _dsml(" "),
    "glm_xml": Style("<arg_key>NAME</arg_key><arg_value>", "</arg_value>"),
    "kimi_k3_xml": Style(
        '<|open|>argument key="NAME" type="TYPE"<|sep|>', "<|close|>argument<|sep|>", {kind: kind for kind in _TYPES}
    ),
    "cohere_xml": Style(
        '<cofl:value name="NAME" type="TYPE">', "</cofl:value>",
        {"string": "raw", "object": "dict", "array": "list", **dict.fromkeys(("number", "boolean", "null"), "json")},
        item='<cofl:value type="TYPE">',
    ),
}  # fmt: skip


class Parts(Protocol):
    """What makes the pieces."""

    def written(self, text: str) -> Expr:
        """A text of the style, in which special tokens may stand."""

    def ended(self, words: Regular | None, end: str) -> Expr:
        """Text that ends where `end` first occurs: one of `words`, or any."""

    def documents(self, schema: Any, place: str) -> Expr:
        """Those of a schema; they begin with white space themselves."""

    def pattern(self, text: str, place: str) -> Expr:
        """The words of a pattern."""

    def shared(self, key: str, place: str, make: Callable[[], Expr]) -> Ref:
        """The rule of this key, which is made at its first use, and may use itself."""


class Arguments:
    """The texts of an object's properties in a style.  Raises SchemaError for what a style cannot say."""

    def __init__(self, style: Style, any_order: bool, parts: Parts, schema: Any) -> None:
        self.style, self.any_order, self.parts = style, any_order, parts
        whole = schema if isinstance(schema, dict) else {}
        self.shared = {key: whole[key] for key in ("$defs", "definitions", "$schema") if key in whole}

    def properties(self, schema: Any, path: str) -> Expr:
        if schema is True:
            schema = {"additionalProperties": True}
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            fail(path, f"an XML style writes the properties of an object, not {shown(schema)}")
        for keyword in schema:
            if keyword in _UNTAKEN:
                fail(
                    f"{path}.{keyword}",
                    f"an XML style takes properties, required and additionalProperties, no {keyword}",
                )
        properties, required = schema.get("properties", {}), schema.get("required", [])
        entries: list[tuple[Expr, bool]] = []
        for name, of in properties.items():
            begin = self.style.begin.replace("NAME", self.style.spelled(name))
            entries.append((self.value(of, f"{path}.properties.{name}", (begin,), name), name in required))
        missing = [name for name in required if name not in properties]
        if missing:
            fail(f"{path}.required", f"the property {shown(missing[0])} is required and not listed in properties")
        others = self.others(schema, path)
        if self.any_order:
            some: list[Expr] = [entry for entry, _ in entries] + ([] if others is None else [others])
            body: Expr = Many(Choice(tuple(some)), len(required), None) if some else EPSILON
        else:
            body = Seq(tuple(entry if needed else Many(entry, 0, 1) for entry, needed in entries))
            if others is not None:
                body = Seq((body, Many(others, 0, None)))
        return Seq((body, _SPACE))

    def others(self, schema: dict[str, Any], path: str) -> Expr | None:
        """A property that is not listed, None if there are none."""
        of = schema.get("additionalProperties", False)
        if of is False:
            return None
        if "NAME" in self.style.end:
            fail(f"{path}.additionalProperties", "the style writes names twice, so that all have to be listed")
        before, _, after = self.style.begin.partition("NAME")
        name = plus(Chars(negate_ranges([(ord(c), ord(c)) for c in '"<>=&\n'])))
        return self.value(of, f"{path}.additionalProperties", (before, name, after), "")

    def value(self, of: Any, path: str, begins: tuple[str | Regular, ...], name: str) -> Expr:
        """A value, with its begin and end, and white space in front."""

        def begin(kind: str) -> Expr:
            typed = (b.replace("TYPE", self.style.types.get(kind, "")) if isinstance(b, str) else b for b in begins)
            return Seq(tuple(self.parts.written(b) if isinstance(b, str) else b for b in typed))

        ways: list[Expr] = []
        stop, rest = self.style.ends(name)
        as_json: dict[str, tuple[str, Any, str, list[str]]] = {}  # types that are written alike, of one schema
        for kind, schema, place in self.kinds(of, path, 0):
            if kind == "string":
                ways.append(Seq((_SPACE, begin(kind), self.text(schema, place, stop), self.parts.written(rest))))
            elif self.style.item is not None and kind in ("array", "object"):
                nested = self.properties if kind == "object" else self.items
                key = json.dumps([self.style.begin, self.any_order, kind, schema, self.shared], default=repr)
                inside = self.parts.shared(key, place, lambda n=nested, s=schema, p=place: n(s, p))  # type: ignore[misc]
                ways.append(Seq((_SPACE, begin(kind), inside, self.parts.written(stop + rest))))
            else:
                label = f"{place} {self.style.types.get(kind, '')}"
                as_json.setdefault(label, (kind, schema, place, []))[3].append(schema["type"])
        for kind, schema, place, types in as_json.values():
            document = self.parts.documents({**self.shared, **schema, "type": types}, place)
            ways.append(Seq((_SPACE, begin(kind), document, _SPACE, self.parts.written(stop + rest))))
        return ways[0] if len(ways) == 1 else Choice(tuple(ways))

    def items(self, schema: dict[str, Any], path: str) -> Expr:
        """The items of an array, nested in the style."""
        for keyword in ("prefixItems", "contains", "uniqueItems", "unevaluatedItems"):
            if schema.get(keyword):
                fail(f"{path}.{keyword}", f"an array in this style takes items, minItems and maxItems, no {keyword}")
        assert self.style.item is not None
        of = schema.get("items", True)
        low, high = _number(schema, "minItems", path) or 0, _number(schema, "maxItems", path)
        if of is False:
            return _SPACE
        one = self.value(of, f"{path}.items", (self.style.item,), "item")
        return Seq((Many(one, low, high), _SPACE))

    def kinds(self, of: Any, path: str, depth: int) -> Iterator[tuple[str, dict[str, Any], str]]:
        """The types that a value may have, each with its schema."""
        if of is True:
            of = {}
        if not isinstance(of, dict) or depth > 20:
            fail(path, f"a value in an XML style has a schema that is an object, not {shown(of)}")
        said = {key: value for key, value in of.items() if key not in _NOTES}
        if len(said) == 1 and "$ref" in said:
            yield from self.kinds(self.referred(said["$ref"], path), path, depth + 1)
            return
        branches = next((key for key in ("anyOf", "oneOf", "allOf") if key in said), None)
        if branches is not None and len(said) == 1 and (branches != "allOf" or len(said["allOf"]) == 1):
            listed = enumerate(said[branches])
            found = [list(self.kinds(one, f"{path}.{branches}[{k}]", depth + 1)) for k, one in listed]
            kinds = [kind for some in found for kind in dict.fromkeys(kind for kind, *_ in some)]
            if branches == "oneOf" and len(set(kinds)) < len(kinds):
                fail(f"{path}.oneOf", "branches of oneOf in an XML style have different types")
            yield from (one for some in found for one in some)
            return
        types = said.get("type")
        if types is None:
            values = said.get("enum", [said["const"]] if "const" in said else None)
            types = list(_TYPES) if values is None else [_type(value) for value in values]
        for kind in dict.fromkeys([types] if isinstance(types, str) else types):
            yield ("number" if kind == "integer" else kind), {**said, "type": kind}, path

    def referred(self, ref: Any, path: str) -> Any:
        """The schema in the definitions that a reference means."""
        at: Any = self.shared
        parts = ref.split("/") if isinstance(ref, str) else []
        for part in parts[1:]:
            at = at.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
        if at is None or parts[:1] != ["#"] or len(parts) < 3:
            fail(f"{path}.$ref", f"a reference in an XML style leads to definitions in the schema, not {shown(ref)}")
        return at

    def text(self, of: dict[str, Any], path: str, end: str) -> Expr:
        """The text of a string, with its end."""
        for keyword in of:
            if keyword in (*_UNTAKEN, "not"):
                known = "enum, const, lengths, format and pattern"
                fail(f"{path}.{keyword}", f"a string in an XML style takes {known}, no {keyword}")
        values = of.get("enum", [of["const"]] if "const" in of else None)
        if values is not None:
            texts = alt(*(literal(one) for one in values if isinstance(one, str)))
            return Seq((cat(self.style.around, texts, self.style.around), self.parts.written(end)))
        low, high = _number(of, "minLength", path) or 0, _number(of, "maxLength", path)
        name = format_name(of["format"], 2020) if isinstance(of.get("format"), str) else None
        bounds = [] if name is None else [format_language(name)]
        if low or high is not None:
            bounds.append(repeat(ANY_CHAR, low, high))
        if "pattern" not in of:
            around = self.style.around
            return self.parts.ended(cat(around, both(*bounds), around) if bounds else None, end)
        if bounds:
            fail(f"{path}.pattern", "a string in an XML style has a pattern, or lengths and a format, not both")
        if not (isinstance(of["pattern"], str) and of["pattern"].startswith("^") and of["pattern"].endswith("$")):
            fail(f"{path}.pattern", "the pattern of a string in an XML style is anchored: ^...$")
        return Seq((self.parts.pattern(of["pattern"], f"{path}.pattern"), self.parts.written(end)))


def _type(value: Any) -> str:
    """The type of a JSON value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    by_class = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return by_class[type(value)]


def _number(of: dict[str, Any], keyword: str, path: str) -> int | None:
    value = of.get(keyword)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        fail(f"{path}.{keyword}", f"{keyword} must be a number that is not negative, not {shown(value)}")
    return value
