"""Constrained decoding: masks of the tokens that keep a model's output inside a schema or grammar.

    vocab = wfsa.Vocab.from_tokenizer(tokenizer)              once for a model
    constraint = wfsa.compile_json_schema(schema, vocab)      once for a schema; shared by threads, saved to files
    state = constraint.start()                                once for a text
    state.get_mask(), state.commit(token_id)                  at each step

``compile`` takes a schema, a type, a list of strings or a compiled pattern.
Grammars: ``compile_lark``, ``compile_gbnf``, ``compile_regex``; tools: ``compile_tools``; batches: ``fill_bitmasks``,
``allocate_bitmask``, ``apply_bitmask_``; drafts of speculative decoding: ``fill_tree``, ``fill_chain``.
Every error is a ``WfsaError`` whose message names the place and the remedy.
Closed sets of items are in ``wfsa.items``, sampling and beam search in ``wfsa.decoding``, and the integrations with
other programs in ``wfsa.integrations``; ``generate`` is the shortest way from prompts to documents.
"""

from wfsa import integrations
from wfsa._ext.mask import TokenMask
from wfsa._ext.state import State, fill_bitmasks, fill_chain, fill_tree
from wfsa.bitmask import allocate_bitmask, apply_bitmask_
from wfsa.caches import cache_info, set_cache_budget
from wfsa.calls import Call, Calls, read_calls
from wfsa.compile_any import compile
from wfsa.compile_options import CompileOptions
from wfsa.compiler import (
    compile_gbnf,
    compile_json_schema,
    compile_lark,
    compile_regex,
    compile_structural_tag,
    compile_tools,
)
from wfsa.constraint import Constraint
from wfsa.errors import (
    ArtifactError,
    BudgetError,
    DecodingError,
    DecodingWarning,
    DocumentError,
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
from wfsa.grammar.json_schema import ReportEntry, SchemaOptions, SchemaReport
from wfsa.grammar_constraint import GrammarConstraint
from wfsa.inspect.check_schema import check_json_schema
from wfsa.integrations.generate import generate
from wfsa.requests import compile_request
from wfsa.texts import TextConstraint, TextState, compile_choice, compile_texts
from wfsa.version import __version__
from wfsa.vocab import Vocab

load = Constraint.load
"""Reads a saved constraint of any kind, like :meth:`wfsa.Constraint.load`."""

__all__ = [
    "ArtifactError",
    "BudgetError",
    "Call",
    "Calls",
    "CompileOptions",
    "Constraint",
    "DecodingError",
    "DecodingWarning",
    "DocumentError",
    "GrammarConstraint",
    "GrammarError",
    "GrammarWarning",
    "ItemError",
    "LimitError",
    "ReportEntry",
    "SchemaError",
    "SchemaOptions",
    "SchemaReport",
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
    "cache_info",
    "check_json_schema",
    "compile",
    "compile_choice",
    "compile_gbnf",
    "compile_json_schema",
    "compile_lark",
    "compile_regex",
    "compile_request",
    "compile_structural_tag",
    "compile_texts",
    "compile_tools",
    "fill_bitmasks",
    "fill_chain",
    "fill_tree",
    "generate",
    "integrations",
    "load",
    "read_calls",
    "set_cache_budget",
]
