"""Grammar text in llguidance's dialect -> :class:`.nodes.Source`, by recursive descent over the lexemes."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from wfsa.errors import GrammarError

from ..allowance import check
from .lexemes import Lexeme, Lexemes, string_value
from .nodes import (
    Alternatives,
    Atom,
    CharRange,
    Ending,
    Import,
    Item,
    Name,
    Nested,
    Not,
    Option,
    Pattern,
    Place,
    Reference,
    Rule,
    Schema,
    Source,
    Special,
    Substring,
    TerminalDefinition,
    Text,
)
from .parameters import ALWAYS, COMPARISONS, N_BITS, Bits, Condition, Step, clear_bit, set_bit
from .substring import words_of

MAX_DEPTH = 60  # of groups and grammars inside each other
MAX_COUNT = 1 << 24  # of a repetition
OPTIONS: Final = {
    "no_forcing": "says how tokens are drafted; a constraint here forces none",
    "allow_initial_skip": "",
    "ignore_once": "",
    "allow_invalid_utf8": "is not supported: text here is UTF-8",
}
_ENDS_SEQUENCE = frozenset(("NEWLINE", "|", "->", "}", ")", "]", "&", "%if", "END"))
_OPERATORS: Final = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_PIECES: Final = ("substring_words", "substring_chars", "substring_chunks")


def parse(text: str) -> Source:
    """The grammar that `text` is.  Raises GrammarError with line and column."""
    return _Parser(Lexemes(text)).source("END")


class _Parser:
    def __init__(self, lexemes: Lexemes) -> None:
        self.lexemes = lexemes
        self.at = 0
        self.depth = 0

    # -- lexemes -------------------------------------------------------------------------------------------------

    @property
    def here(self) -> Lexeme:
        return self.lexemes.listed[self.at]

    @property
    def place(self) -> Place:
        return self.lexemes.place(self.here.offset)

    def fail(self, what: str, remedy: str = "") -> NoReturn:
        raise GrammarError(f"{what} at {self.place}" + (f"; {remedy}" if remedy else ""))

    def accept(self, kind: str) -> bool:
        if self.here.kind == kind:
            self.at += 1
            return True
        return False

    def take(self, kind: str, what: str = "") -> str:
        here = self.here
        if here.kind != kind:
            found = "the end of the line" if here.kind == "NEWLINE" else repr(here.text)
            self.fail(f"expected {what or repr(kind)}, found {found}")
        self.at += 1
        return here.text

    def name(self) -> str:
        return self.take("TERMINAL" if self.here.kind == "TERMINAL" else "RULE", "a name")

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
        rules: dict[str, Rule] = {}
        terminals: dict[str, TerminalDefinition] = {}
        imports: list[Import] = []
        ignored: list[Alternatives] = []
        options: dict[str, bool] = {}
        while True:
            check()
            while self.accept("NEWLINE"):
                pass
            kind = self.here.kind
            if kind == end:
                return Source(rules, terminals, tuple(imports), tuple(ignored), options)
            place = self.place
            if kind == "RULE":
                rule = self.rule()
                if rule.name in rules:
                    raise GrammarError(f"the rule {rule.name} is defined twice, the second time at {place}")
                rules[rule.name] = rule
            elif kind == "TERMINAL":
                terminal = self.terminal()
                if terminal.name in terminals:
                    raise GrammarError(f"the terminal {terminal.name} is defined twice, the second time at {place}")
                terminals[terminal.name] = terminal
            elif kind == "%ignore":
                self.at += 1
                ignored.append(self.alternatives())
            elif kind == "%import":
                imports.append(self.import_())
            elif kind == "%llguidance":
                options |= self.options()
            elif kind in ("%override", "%declare", "%extend"):
                self.fail(f"{kind} is not in this dialect", "write the definition out, or pass dialect='lark'")
            else:
                self.fail("expected a rule, a terminal or a statement")
            if self.here.kind != end:
                self.take("NEWLINE", "the end of the line")

    def options(self) -> dict[str, bool]:
        value = self.here.value
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

    def import_(self) -> Import:
        place = self.place
        self.at += 1
        if self.here.kind == ".":
            self.fail("an import from beside the file is not in this dialect", "pass dialect='lark'")
        path = [self.name()]
        while self.accept("."):
            path.append(self.name())
        if self.accept("("):
            names = [self.name()]
            while self.accept(","):
                names.append(self.name())
            self.take(")")
            return Import(tuple(path), tuple((n, n) for n in names), place)
        if len(path) < 2:
            self.fail("%import takes a file and a name, as in common.INT")
        alias = self.name() if self.accept("->") else path[-1]
        return Import(tuple(path[:-1]), ((path[-1], alias),), place)

    def terminal(self) -> TerminalDefinition:
        place = self.place
        name = self.take("TERMINAL")
        self.no_lark_parameters()
        self.take(":")
        return TerminalDefinition(name, place, self.alternatives())

    def no_lark_parameters(self) -> None:
        for kind, what in (("{", "a template"), (".", "a priority")):
            if self.here.kind == kind:
                self.fail(f"{what} is not in this dialect", "pass dialect='lark', where the file needs no other one")

    def rule(self) -> Rule:
        place = self.place
        name = self.take("RULE").lstrip("!?")
        parametric = self.accept("::")
        if parametric:
            self.take("_", "'_' for the parameter")
        self.no_lark_parameters()
        attributes = self.attributes(name) if self.here.kind == "[" else {}
        self.take(":")
        return Rule(name, place, self.alternatives(), parametric, **attributes)

    def attributes(self, rule: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        lazy = False
        self.take("[")
        while self.here.kind != "]":
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
            out["ending"] = Ending(self.value(), key == "stop")
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

    # -- right-hand sides ----------------------------------------------------------------------------------------

    def alternatives(self) -> Alternatives:
        if self.depth > MAX_DEPTH:
            self.fail("the grammar is nested too deeply", "give inner groups names of their own")
        self.depth += 1
        place = self.place
        options = [self.option()]
        while self.bar():
            options.append(self.option())
        self.depth -= 1
        return Alternatives(tuple(options), place)

    def bar(self) -> bool:
        at = self.at
        while self.accept("NEWLINE"):
            pass
        if self.accept("|"):
            return True
        self.at = at
        return False

    def option(self) -> Option:
        conjuncts = [self.sequence()]
        while self.accept("&"):
            conjuncts.append(self.sequence())
        if self.accept("->"):
            self.take("RULE", "a name")
        return Option(tuple(conjuncts), self.condition() if self.accept("%if") else ALWAYS)

    def sequence(self) -> tuple[Item, ...]:
        out: list[Item] = []
        while self.here.kind not in _ENDS_SEQUENCE:
            out.append(self.item())
        return tuple(out)

    def item(self) -> Item:
        atom = self.atom()
        operator = _OPERATORS.get(self.here.kind)
        if operator is not None:
            self.at += 1
            return Item(atom, *operator)
        if self.here.kind == "~" and self.lexemes.listed[self.at + 1].kind == "NUMBER":
            self.at += 1
            low = self.count()
            return Item(atom, *self.counts(low, self.count() if self.accept("..") else low))
        if self.accept("{"):
            low = 0 if self.here.kind == "," else self.count()
            high: int | None = low
            if self.accept(","):
                high = None if self.here.kind == "}" else self.count()
            item = Item(atom, *self.counts(low, high))
            self.take("}")
            return item
        return Item(atom)

    def count(self) -> int:
        return self.whole_number(MAX_COUNT, "a count")

    def counts(self, low: int, high: int | None) -> tuple[int, int | None]:
        if high is not None and high < low:
            self.fail(f"a repetition from {low} to {high}: the counts must rise")
        return low, high

    def atom(self) -> Atom:
        place = self.place
        if self.accept("~"):
            return Not(self.atom(), place)
        if self.accept("("):
            group = self.alternatives()
            self.take(")")
            return group
        if self.accept("["):
            group = self.alternatives()
            self.take("]")
            return Alternatives((*group.options, Option(((),))), place)
        return self.value()

    def value(self) -> Atom:
        here, place = self.here, self.place
        kind = here.kind
        if kind == "STRING":
            return self.string()
        if kind == "RULE" or kind == "TERMINAL":
            return self.symbol()
        self.at += 1
        if kind == "REGEXP":
            end = here.text.rfind("/")
            return Pattern(here.text[1:end], here.text[end + 1 :], place)
        if kind == "REFERENCE":
            return Reference(here.text[1:], place)
        if kind == "SPECIAL":
            return Special(here.text, place)
        if kind == "%json":
            return Schema(here.value, place)
        if kind == "%regex":
            return Substring(self.pieces(here.value, place), place)
        if kind == "%lark":
            self.take("{")
            if self.depth > MAX_DEPTH:
                self.fail("the grammar is nested too deeply")
            self.depth += 1
            nested = Nested(self.source("}"), place)
            self.depth -= 1
            self.take("}")
            return nested
        self.at -= 1
        found = "the end of the line" if kind == "NEWLINE" else repr(here.text)
        self.fail(f"expected a symbol, found {found}")

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
        if self.here.kind == "{" and self.lexemes.listed[self.at + 1].kind not in ("NUMBER", ","):
            self.fail("a template is not in this dialect", "pass dialect='lark', where the file needs no other one")
        return Name(name.lstrip("!?"), place, self.step() if self.accept("::") else None)

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
        if self.here.kind in ("NUMBER", "HEX"):
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
        if self.here.kind == "HEX":
            value = int(self.here.text, 16)
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

    def condition(self) -> Condition:
        if self.depth > MAX_DEPTH:
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
            left = self.condition()
            self.take(",")
            return Condition(kind, parts=(left, self.condition()))
        if kind == "not":
            return Condition(kind, parts=(self.condition(),))
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
