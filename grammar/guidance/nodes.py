"""The syntax tree of a grammar in llguidance's dialect: the shared nodes, and what only the dialect has.

Atoms beside the shared ones: Not, Text, Pattern, Reference, Schema, Substring, Nested.
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
    """To another grammar, by its name."""

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
    """``lazy``, ``suffix=`` or ``stop=`` of a rule; `marker` None: the body itself ends it."""

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
    """One grammar: the file, a nested one, or one that is given by name."""

    rules: dict[str, Rule] = field(default_factory=dict)
    terminals: dict[str, Alternatives] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    ignored: list[Alternatives] = field(default_factory=list)
    options: dict[str, bool] = field(default_factory=dict)
