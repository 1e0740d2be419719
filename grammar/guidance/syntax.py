"""Grammar text in llguidance's dialect -> :class:`.nodes.Source`."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from wfsa.errors import GrammarError

from ..notation.dialects import GUIDANCE
from ..notation.lexemes import Place
from ..notation.nodes import Alternatives, Atom, CharRange, Maybe, Name, Option, Special
from ..notation.reader import Reader
from .nodes import Ending, Nested, Not, Pattern, Reference, Rule, Schema, Source, Substring, TerminalDefinition, Text
from .parameters import ALWAYS, COMPARISONS, N_BITS, Bits, Condition, Step, clear_bit, set_bit
from .substring import words_of

MAX_COUNT = 1 << 24  # of a repetition
OPTIONS: Final = {
    "no_forcing": "says how tokens are drafted; a constraint here forces none",
    "allow_initial_skip": "",
    "ignore_once": "",
    "allow_invalid_utf8": "is not supported: text here is UTF-8",
}
_PIECES: Final = ("substring_words", "substring_chars", "substring_chunks")
_ELSEWHERE: Final = "pass dialect='lark', where the file needs no other one"
_HEX_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|.)", re.DOTALL)
_NOTHING: Final = Option(((),))


def parse(text: str) -> Source:
    """The grammar that `text` is.  Raises GrammarError with line and column."""
    return _Parser(text).source("END")


def string_value(text: str) -> tuple[str, bool]:
    r"""What a STRING stands for, and whether it ignores case.  Raises GrammarError for half a surrogate pair."""
    body = text.removesuffix("i")
    as_json = _HEX_ESCAPE.sub(lambda m: f"\\u00{m[1]}" if m[1] else m[0], body)
    value = str(json.loads(as_json))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise GrammarError(f"the string {text} has half of a surrogate pair: write both, or the character") from None
    return value, body != text


class _Parser(Reader):
    dialect = GUIDANCE
    ends = frozenset(("NL", "OR", "->", "}", ")", "]", "&", "%if", "END"))

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.out = Source()

    def whole_number(self, most: int, what: str) -> int:
        text = self.take("NUMBER", what)
        if not text.isdigit() or len(text) > 20:
            self.at -= 1
            self.fail(f"{text} is not {what}")
        if int(text) > most:
            self.at -= 1
            self.fail(f"the number {text} is too large; at most {most} may stand here")
        return int(text)

    # -- statements ----------------------------------------------------------------------------------------------

    def source(self, end: str) -> Source:
        outer, self.out = self.out, Source()
        self.statements(end)
        inner, self.out = self.out, outer
        return inner

    def statement(self, kind: str) -> None:
        place = self.place
        if kind == "RULE":
            rule = self.rule()
            if rule.name in self.out.rules:
                raise GrammarError(f"the rule {rule.name} is defined twice, the second time at {place}")
            self.out.rules[rule.name] = rule
        elif kind == "TERMINAL":
            terminal = self.terminal()
            if terminal.name in self.out.terminals:
                raise GrammarError(f"the terminal {terminal.name} is defined twice, the second time at {place}")
            self.out.terminals[terminal.name] = terminal
        elif kind == "%ignore":
            self.at += 1
            self.out.ignored.append(self.alternatives())
        elif kind == "%import":
            self.out.imports.append(self.import_())
            if self.out.imports[-1].is_relative:
                self.fail("an import from beside the file is not in this dialect", "pass dialect='lark'", place.offset)
        elif kind == "%llguidance":
            self.out.options.update(self.options())
        elif kind in ("%override", "%declare", "%extend"):
            self.fail(f"{kind} is not in this dialect", "write the definition out, or pass dialect='lark'")
        else:
            self.fail("expected a rule, a terminal or a statement")

    def options(self) -> dict[str, bool]:
        value = self.values[self.at]
        if not isinstance(value, dict):
            self.fail("%llguidance takes a JSON object")
        for key, chosen in value.items():
            if key not in OPTIONS:
                self.fail(f"unknown option {key!r} in %llguidance", f"known are {', '.join(OPTIONS)}")
            if not isinstance(chosen, bool):
                self.fail(f"the option {key!r} in %llguidance is true or false")
            if chosen and key == "allow_invalid_utf8":
                self.fail(f"the option {key!r} in %llguidance {OPTIONS[key]}")
        self.at += 1
        return value

    def terminal(self) -> TerminalDefinition:
        place = self.place
        name = self.take("TERMINAL")
        self.no_lark_parameters()
        return TerminalDefinition(name, place, self.body())

    def no_lark_parameters(self) -> None:
        for kind, what in (("{", "a template"), (".", "a priority")):
            if self.kind == kind:
                self.fail(f"{what} is not in this dialect", _ELSEWHERE)

    def rule(self) -> Rule:
        place = self.place
        name = self.take("RULE").lstrip("!?")
        parametric = self.accept("::")
        if parametric:
            self.take("_", "'_' for the parameter")
        self.no_lark_parameters()
        attributes = self.attributes(name) if self.kind == "[" else {}
        return Rule(name, place, self.body(), parametric, **attributes)

    def attributes(self, rule: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        lazy = False
        self.take("[")
        while self.kind != "]":
            key = self.take("RULE", "an attribute")
            if key == "capture":
                out[key] = self.plain_string() if self.accept("=") else out.get(key, rule)
            elif key == "lazy":
                lazy = True
            else:
                self.take("=")
                self.attribute(key, out)
            if not self.accept(","):
                break
        self.take("]")
        if lazy and "ending" not in out:
            out["ending"] = Ending(None)
        return out

    def attribute(self, key: str, out: dict[str, Any]) -> None:
        if key in ("stop", "suffix"):
            if "ending" in out:
                self.fail("a rule takes one of stop= and suffix=")
            out["ending"] = Ending(self.marker(), key == "stop")
        elif key == "stop_capture":
            out[key] = self.plain_string()
        elif key == "max_tokens":
            out[key] = self.whole_number(MAX_COUNT, "a number of tokens")
        elif key == "temperature":
            out[key] = float(self.take("NUMBER", "a number"))
        else:
            self.fail(
                f"unknown attribute {key!r}",
                "known are lazy, suffix, stop, capture, stop_capture, max_tokens, temperature",
            )

    def plain_string(self) -> str:
        text = self.take("STRING", "a string")
        value, ignores_case = string_value(text)
        if ignores_case:
            self.at -= 1
            self.fail(f"the string {text} takes no flag here")
        return value

    def marker(self) -> Atom:
        got = self.value(self.kind)
        if got is None:
            self.unexpected()
        return got

    # -- right-hand sides ----------------------------------------------------------------------------------------

    def count(self) -> int:
        return self.whole_number(MAX_COUNT, "a count")

    def group(self, kind: str) -> Atom:
        place = self.place
        got = super().group(kind)
        return Alternatives((*got.body.options, _NOTHING), place) if isinstance(got, Maybe) else got

    def value(self, kind: str) -> Atom | None:
        if kind == "RULE" or kind == "TERMINAL":
            return self.symbol()
        if kind == "STRING":
            return self.string()
        place, text = self.place, self.texts[self.at]
        self.at += 1
        match kind:
            case "REGEXP":
                end = text.rfind("/")
                return Pattern(text[1:end], text[end + 1 :], place)
            case "REFERENCE":
                return Reference(text[1:], place)
            case "SPECIAL":
                return Special(text, place)
            case "%json":
                return Schema(self.values[self.at - 1], place)
            case "%regex":
                return Substring(self.pieces(self.values[self.at - 1], place), place)
            case "%lark":
                return self.nested(place)
            case "~":
                inner = self.atom(self.kind)
                if inner is None:
                    self.unexpected()
                return Not(inner, place)
        self.at -= 1
        return None

    def nested(self, place: Place) -> Nested:
        self.take("{")
        if self.dialect.max_depth is not None and self.depth > self.dialect.max_depth:
            self.fail("the grammar is nested too deeply")
        self.depth += 1
        nested = Nested(self.source("}"), place)
        self.depth -= 1
        self.take("}")
        return nested

    def string(self) -> Atom:
        place = self.place
        text, ignores_case = string_value(self.take("STRING"))
        if not self.accept(".."):
            return Text(text, ignores_case, place)
        first, last = text, self.plain_string()
        if ignores_case or len(first) != 1 or len(last) != 1:
            raise GrammarError(f"both ends of the range at {place} must be a single character, without a flag")
        if first > last:
            raise GrammarError(f"the range at {place} is empty: its first character comes after its last")
        return CharRange(first, last, place)

    def symbol(self) -> Name:
        place = self.place
        name = self.name()
        if self.kind == "{" and self.kinds[self.at + 1] not in ("NUMBER", ","):
            self.fail("a template is not in this dialect", _ELSEWHERE)
        return Name(name.lstrip("!?"), place, (), self.step() if self.accept("::") else None)

    @staticmethod
    def pieces(value: Any, place: Place) -> tuple[str, ...]:
        """The pieces that ``%regex {...}`` asks for."""
        kinds = list(value) if isinstance(value, dict) else []
        unknown = [kind for kind in kinds if kind not in _PIECES]
        if len(kinds) != 1 or unknown:
            raise GrammarError(f"%regex at {place} takes an object with exactly one of {', '.join(_PIECES)}")
        got = value[kinds[0]]
        listed = kinds[0] == "substring_chunks"
        if not (isinstance(got, list) and all(isinstance(p, str) for p in got) if listed else isinstance(got, str)):
            raise GrammarError(f"{kinds[0]} at {place} is {'a list of strings' if listed else 'a string'}")
        if listed:
            return tuple(got)
        return tuple(got) if kinds[0] == "substring_chars" else tuple(words_of(got))

    # -- parameters ----------------------------------------------------------------------------------------------

    def step(self) -> Step:
        if self.kind in ("NUMBER", "HEX"):
            return Step("constant", self.parameter())
        if self.accept("_"):
            return Step("self")
        kind = self.take("RULE", "a parameter")
        self.take("(")
        if kind in ("incr", "decr"):
            out = Step(kind, bits=self.bits())
        elif kind in ("bit_and", "bit_or"):
            out = Step(kind, self.parameter())
        elif kind in ("set_bit", "clear_bit"):
            out = (set_bit if kind == "set_bit" else clear_bit)(self.bit(N_BITS - 1))
        else:
            self.fail(f"unknown step {kind!r}", "known are incr, decr, bit_and, bit_or, set_bit, clear_bit")
        self.take(")")
        return out

    def parameter(self) -> int:
        if self.kind == "HEX":
            value = int(self.texts[self.at], 16)
            if value >> N_BITS:
                self.fail(f"a parameter has {N_BITS} bits")
            self.at += 1
            return value
        return self.whole_number((1 << N_BITS) - 1, "a parameter")

    def bit(self, most: int) -> int:
        return self.whole_number(most, "the number of a bit")

    def bits(self) -> Bits:
        if self.accept("_"):
            return Bits()
        if not self.accept("["):
            self.fail("expected bits, '_' or '[first:end]'")
        low = self.bit(N_BITS - 1)
        self.take(":")
        high = self.bit(N_BITS)
        if high <= low:
            self.fail(f"the bits [{low}:{high}] are none: the end must be greater")
        self.take("]")
        return Bits(low, high)

    def condition(self) -> Condition | None:
        got = self.whole_condition()
        return None if got == ALWAYS else got

    def whole_condition(self) -> Condition:
        """A condition; that of %if, or a part of one."""
        if self.dialect.max_depth is not None and self.depth > self.dialect.max_depth:
            self.fail("the condition is nested too deeply")
        kind = self.take("RULE", "a condition")
        if kind == "true":
            if self.accept("("):
                self.take(")")
            return ALWAYS
        self.take("(")
        self.depth += 1
        out = self.applied(kind)
        self.depth -= 1
        self.take(")")
        return out

    def applied(self, kind: str) -> Condition:
        if kind in ("and", "or"):
            left = self.whole_condition()
            self.take(",")
            return Condition(kind, parts=(left, self.whole_condition()))
        if kind == "not":
            return Condition(kind, parts=(self.whole_condition(),))
        if kind in ("bit_clear", "bit_set"):
            k = self.bit(N_BITS - 1)
            return Condition("eq", Bits(k, k + 1), int(kind == "bit_set"))
        if kind in ("is_ones", "is_zeros"):
            bits = self.bits()
            return Condition("eq", bits, bits.ones if kind == "is_ones" else 0)
        if kind.removeprefix("bit_count_") not in COMPARISONS:
            self.at -= 1
            self.fail(f"unknown condition {kind!r}", "known are eq, lt, ..., bit_set, is_ones, bit_count_eq, ..., and")
        bits = self.bits()
        self.take(",")
        return Condition(kind, bits, self.bit(N_BITS - 1) if kind.startswith("bit_count_") else self.parameter())
