"""The syntax tree of a grammar in llguidance's dialect.

Alternatives    of Option, of conjuncts (more than one only in terminals), of Item(atom, low, high)
atoms           Alternatives, Not, Name, Text, Pattern, CharRange, Special, Reference, Schema, Substring, Nested
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .parameters import ALWAYS, Condition, Step


@dataclass(frozen=True, slots=True)
class Place:
    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line} column {self.column}"


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    place: Place
    step: Step | None = None  # of a parameter

    @property
    def is_terminal(self) -> bool:
        return self.name.lstrip("_")[:1].isupper()


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    ignores_case: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Pattern:
    pattern: str
    flags: str
    place: Place


@dataclass(frozen=True, slots=True)
class CharRange:
    first: str
    last: str
    place: Place


@dataclass(frozen=True, slots=True)
class Special:
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Reference:
    """To another grammar, by its name."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    schema: Any
    place: Place


@dataclass(frozen=True, slots=True)
class Substring:
    pieces: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    source: Source
    place: Place


@dataclass(frozen=True, slots=True)
class Not:
    atom: Atom
    place: Place


@dataclass(frozen=True, slots=True)
class Item:
    atom: Atom
    low: int = 1
    high: int | None = 1


@dataclass(frozen=True, slots=True)
class Option:
    conjuncts: tuple[tuple[Item, ...], ...]
    condition: Condition = ALWAYS


@dataclass(frozen=True, slots=True)
class Alternatives:
    options: tuple[Option, ...]
    place: Place


Atom = Alternatives | Not | Name | Text | Pattern | CharRange | Special | Reference | Schema | Substring | Nested


@dataclass(frozen=True, slots=True)
class Ending:
    """``lazy``, ``suffix=`` or ``stop=`` of a rule; `marker` None: the body itself ends it."""

    marker: Atom | None
    is_stop: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    place: Place
    body: Alternatives
    parametric: bool = False
    ending: Ending | None = None
    capture: str | None = None
    stop_capture: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class TerminalDefinition:
    name: str
    place: Place
    body: Alternatives


@dataclass(frozen=True, slots=True)
class Import:
    path: tuple[str, ...]
    names: tuple[tuple[str, str], ...]  # name there, name here
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One grammar: the file, a nested one, or one that is given by name."""

    rules: dict[str, Rule]
    terminals: dict[str, TerminalDefinition]
    imports: tuple[Import, ...]
    ignored: tuple[Alternatives, ...]
    options: dict[str, bool]
