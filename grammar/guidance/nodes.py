"""The syntax tree of a grammar in llguidance's dialect: the shared nodes, and what only the dialect has.

Atoms beside the shared ones: Not, Text, Pattern, Reference, Schema, Substring, Nested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..notation.lexemes import Place
from ..notation.nodes import Alternatives, Atom, Import


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


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One grammar: the file, a nested one, or one that is given by name."""

    rules: dict[str, Rule] = field(default_factory=dict)
    terminals: dict[str, TerminalDefinition] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    ignored: list[Alternatives] = field(default_factory=list)
    options: dict[str, bool] = field(default_factory=dict)
