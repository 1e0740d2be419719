"""Constrained decoding with ahead-of-time compiled automata."""

from wfsa._ext.mask import TokenMask
from wfsa._ext.state import State, fill_bitmasks
from wfsa.compiler import (
    CompileOptions,
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
    GrammarError,
    GrammarWarning,
    LimitError,
    SchemaError,
    StateError,
    VocabError,
    WfsaError,
)
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.storage.constraint_file import load
from wfsa.texts.constraint import StringConstraint, compile_items
from wfsa.version import __version__
from wfsa.vocab import Vocab

__all__ = [
    "ArtifactError",
    "CompileOptions",
    "Constraint",
    "GrammarError",
    "GrammarWarning",
    "LimitError",
    "SchemaError",
    "SchemaOptions",
    "State",
    "StateError",
    "StringConstraint",
    "TokenMask",
    "Vocab",
    "VocabError",
    "WfsaError",
    "__version__",
    "compile",
    "compile_gbnf",
    "compile_items",
    "compile_json_schema",
    "compile_lark",
    "compile_regex",
    "compile_tools",
    "fill_bitmasks",
    "load",
]
