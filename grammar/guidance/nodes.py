"""The syntax tree of a grammar in llguidance's dialect: the shared nodes, and those of this dialect only.

Its own atoms are Not, Text, Pattern, Reference, Schema, Substring and Nested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..ir import RuleAttributes
from ..notation.lexemes import Place
from ..notation.nodes import Alternatives, Atom, Import


class Text(NamedTuple):
    text: str
    ignores_case: bool


class Pattern(NamedTuple):
    pattern: str
    flags: str
    place: Place


class Reference(NamedTuple):
    """A reference to another grammar, by its name."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    schema: Any
    place: Place


class Substring(NamedTuple):
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    source: Source
    place: Place


class Not(NamedTuple):
    atom: Atom


class Ending(NamedTuple):
    """``lazy``, ``suffix=`` or ``stop=`` of a rule; without a `marker`, the body itself is the end."""

    marker: Atom | None
    is_stop: bool = False


class Rule(NamedTuple):
    place: Place
    body: Alternatives
    parametric: bool
    ending: Ending | None
    attributes: RuleAttributes


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One grammar: the file, a nested grammar, or one that is given by name."""

    rules: dict[str, Rule] = field(default_factory=dict)
    terminals: dict[str, Alternatives] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    ignored: list[Alternatives] = field(default_factory=list)
    options: dict[str, bool] = field(default_factory=dict)
