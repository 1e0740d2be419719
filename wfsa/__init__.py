"""Constrained decoding with ahead-of-time compiled automata."""

from wfsa._ext.mask import TokenMask
from wfsa._ext.state import State, fill_bitmasks
from wfsa.bitmask import allocate_bitmask, apply_bitmask_
from wfsa.compile_options import CompileOptions
from wfsa.compiler import (
    compile,
    compile_gbnf,
    compile_json_schema,
    compile_lark,
    compile_regex,
    compile_tools,
)
from wfsa.constraint import Constraint
from wfsa.errors import (
    ArtifactError,
    DecodingError,
    GrammarError,
    GrammarWarning,
    ItemError,
    LimitError,
    SchemaError,
    SchemaWarning,
    StateError,
    VocabError,
    VocabWarning,
    WfsaError,
)
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.grammar_constraint import GrammarConstraint
from wfsa.texts import TextConstraint, TextState, compile_choice, compile_texts
from wfsa.version import __version__
from wfsa.vocab import Vocab

load = Constraint.load

__all__ = [
    "ArtifactError",
    "CompileOptions",
    "Constraint",
    "DecodingError",
    "GrammarConstraint",
    "GrammarError",
    "GrammarWarning",
    "ItemError",
    "LimitError",
    "SchemaError",
    "SchemaOptions",
    "SchemaWarning",
    "State",
    "StateError",
    "TextConstraint",
    "TextState",
    "TokenMask",
    "Vocab",
    "VocabError",
    "VocabWarning",
    "WfsaError",
    "__version__",
    "allocate_bitmask",
    "apply_bitmask_",
    "compile",
    "compile_choice",
    "compile_gbnf",
    "compile_json_schema",
    "compile_lark",
    "compile_regex",
    "compile_texts",
    "compile_tools",
    "fill_bitmasks",
    "load",
]
