"""What a caller can choose about the JSON text, and about the two keywords that may not be enforced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from wfsa.errors import WfsaError

Whitespace = Literal["flexible", "compact", "python", "indent"]
Spelling = Literal["canonical", "any"]
PropertyOrder = Literal["declared", "any"]
UniqueItems = Literal["exact", "unchecked"]
MaxWhitespace = int | Literal["indented"] | None
Formats = Literal["assert", "annotate"]
AdditionalProperties = Literal["allow", "forbid"]
Required = Literal["listed", "all"]
DRAFTS = (4, 6, 7, 2019, 2020)
_INDENTED: Final = (2, 4)  # for max_whitespace="indented": a line end may have two bytes

_GAP: Final = 20  # ... inside a larger text, where the depth is not counted: a line end and four levels of four

_CHOICES = {
    name: get_args(choices)
    for name, choices in {
        "whitespace": Whitespace, "spelling": Spelling, "property_order": PropertyOrder, "unique_items": UniqueItems,
        "formats": Formats, "additional_properties": AdditionalProperties, "required": Required,
    }.items()
}  # fmt: skip
_COUNTS = {"max_whitespace": 1 << 12, "indent": 64, "max_depth": 256}  # the most of each


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    r"""How the document may be spelled.

    whitespace: "flexible" is any JSON whitespace before every lexeme, none at the end of the document;
    "compact" is none; "python" is what ``json.dumps`` writes, ``", "`` and ``": "``; "indent" is what
    ``json.dumps(indent=...)`` writes.
    max_whitespace: the most whitespace in one place under "flexible": "indented", what a document printed with an
    indentation of four needs there, a line end and four characters for every bracket that is open; a number of
    characters; None for no bound, and then a model may write blanks until its tokens are spent.
    indent: spaces for each level under "indent".
    max_depth: under "indent", levels of objects and arrays down to which what recurs is followed; documents nested
    deeper are refused there (the report lists it).
    spelling: "canonical" is one usual spelling of a value wherever the schema says more than its type and length: no
    escapes that ``json.dumps(ensure_ascii=False)`` would not write, numbers without exponent, whole ones without
    fraction; "any" is every spelling of each value (``"\u0061"``, ``1.0``, ``10e-1``), in keys too, at the cost of
    larger automata.  Where the schema says more of a number than its sign, at most `number_spellings.PLACES` digits
    before and behind the point are sure to be taken beside an exponent.
    property_order: "declared" takes the declared names in the order of the schema, each at most once, and other names
    anywhere after those; "any" takes every order.  The tables for the sets of names that documents have had by then are
    made while decoding, so that the first masks with a new set take longer.
    unique_items: "exact" enforces ``uniqueItems``; "unchecked" ignores it, so that invalid documents can be written
    (the report lists it), and masks inside such arrays cost no more than elsewhere.
    formats: "assert" enforces ``format`` where its name is known; "annotate" ignores it, as the specification has it
    by default (the report lists it).
    additional_properties: "allow" takes other properties than those named where the schema does not forbid them;
    "forbid" takes only those under ``properties`` and ``patternProperties``, of the schema of a value and of all that
    is applied to the same value (``$ref``, ``allOf``, ``then``, one branch of ``anyOf``), unless one of these has
    ``additionalProperties`` or ``unevaluatedProperties``.  ``{"type": "object"}`` then is ``{}`` alone; a schema that
    says nothing about objects still takes any.
    required: "listed" asks for the names under ``required``; "all" for every name under ``properties``, too.
    lenient: what cannot be enforced is ignored, at the smallest place that holds it, so that invalid documents can be
    written there (the report lists each as widened); otherwise it is an error.
    draft: 4, 6, 7, 2019 or 2020, for schemas without ``$schema``.
    registry: documents that references may lead to, by address: a mapping, or a ``referencing.Registry``.

    Raises TypeError for a value of the wrong type, and WfsaError (a ValueError) for one that is out of range.
    """

    whitespace: Whitespace = "flexible"
    max_whitespace: MaxWhitespace = "indented"
    indent: int = 2
    max_depth: int = 12
    spelling: Spelling = "canonical"
    property_order: PropertyOrder = "declared"
    unique_items: UniqueItems = "exact"
    formats: Formats = "assert"
    additional_properties: AdditionalProperties = "allow"
    required: Required = "listed"
    lenient: bool = False
    registry: Any = None
    draft: int = 2020

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str):
                raise TypeError(f"SchemaOptions.{name} must be one of {', '.join(known)}, not {value!r}")
            if value not in known:
                raise WfsaError(f"SchemaOptions.{name}: unknown choice {value!r}, known are {', '.join(known)}")
        for name, most in _COUNTS.items():
            value = getattr(self, name)
            if name == "max_whitespace" and value in (None, "indented"):
                continue
            if type(value) is not int:
                also = "\"indented\", None or " if name == "max_whitespace" else ""
                raise TypeError(f"SchemaOptions.{name} must be {also}a whole number from 0 to {most}, not {value!r}")
            if not 0 <= value <= most:
                raise WfsaError(f"SchemaOptions.{name} must be from 0 to {most}, not {value}")
        if not isinstance(self.lenient, bool):
            raise TypeError(f"SchemaOptions.lenient must be True or False, not {self.lenient!r}")
        if type(self.draft) is not int:
            raise TypeError(f"SchemaOptions.draft must be one of {listed_drafts()}, not {self.draft!r}")
        if self.draft not in DRAFTS:
            raise WfsaError(f"SchemaOptions.draft: {self.draft} is not supported, supported are {listed_drafts()}")
        if not (self.registry is None or hasattr(self.registry, "__getitem__") or hasattr(self.registry, "contents")):
            raise TypeError(
                "SchemaOptions.registry must be a mapping from addresses to schemas, or a referencing.Registry, not "
                f"{type(self.registry).__name__}"
            )

    @classmethod
    def strict(cls, **others: Any) -> SchemaOptions:
        """What OpenAI's structured outputs write under ``"strict": true``: the named properties, all, in their order.

        A schema in the strict subset says so itself, and gives the same documents without these options.  One that is
        not, which OpenAI refuses, is read as if it did; where it has ``additionalProperties`` other than false, that is
        followed.  `others` are further options.
        """
        return cls(**{"additional_properties": "forbid", "required": "all", **others})

    def as_written(self) -> SchemaOptions:
        """The options under which a schema admits what it says, and no less."""
        if (self.additional_properties, self.required) == ("allow", "listed"):
            return self
        return replace(self, additional_properties="allow", required="listed")

    @property
    def white_space_limit(self) -> tuple[int, int] | None:
        """Bytes in one place, and more of them for each open bracket (:attr:`wfsa.grammar.ir.Grammar.white_space`)."""
        if self.whitespace != "flexible" or self.max_whitespace is None:
            return None
        return _INDENTED if self.max_whitespace == "indented" else (self.max_whitespace, 0)


    @property
    def gap(self) -> int | None:
        """Characters of whitespace in one place of a document that is part of a larger text; None: no bound."""
        if self.whitespace != "flexible" or self.max_whitespace is None:
            return None
        return _GAP if self.max_whitespace == "indented" else self.max_whitespace


def listed_drafts() -> str:
    """The supported drafts, for messages."""
    return f"{', '.join(map(str, DRAFTS[:-1]))} and {DRAFTS[-1]}"
