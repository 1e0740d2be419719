"""The compiler's driver: a grammar and a vocabulary in, a constraint out.

    front end            wfsa.grammar.*          text -> Grammar
    terminals            ext/dfa.hpp             regular trees -> minimal byte DFAs
    normalise            ext/normalise.hpp       rules -> binary rules without ε
    LR automaton         ext/lr0.hpp             binary rules -> stack effects of every terminal
    lexer states         ext/lexer.hpp           contexts -> lexer DFA            } on demand in "lazy" mode,
    profiles             ext/profile.hpp         lexer state × vocabulary         } all that can be reached
    parser DWA           ext/parser_dwa.hpp      tails × LR states                } in "ahead" mode
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from wfsa._ext.engine import automaton, build_core
from wfsa.constraint import Constraint
from wfsa.errors import GrammarError
from wfsa.grammar.gbnf import read_gbnf
from wfsa.grammar.ir import Grammar, Tokens
from wfsa.grammar.lark import read_lark
from wfsa.grammar.regex_grammar import read_regex
from wfsa.vocab import Vocab

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How to compile.

    mode: "ahead" expands everything that can be reached; "lazy" expands on first use.
    max_terminal_states, max_lr_states, max_lexer_states: LimitError beyond these.
    max_seconds: LimitError when compiling takes longer; None for no limit.
    progress: called with (stage, fraction between 0 and 1).
    """

    mode: Literal["ahead", "lazy"] = "ahead"
    max_terminal_states: int = 1 << 18
    max_lr_states: int = 1 << 20
    max_lexer_states: int = 1 << 20
    max_seconds: float | None = None
    progress: Progress | None = None


def compile(grammar: Grammar, vocab: Vocab, options: CompileOptions | None = None, **keywords: Any) -> Constraint:
    """Compile a grammar for a vocabulary.  Keywords are fields of CompileOptions.

    Raises GrammarError (nothing can be derived, undefined symbols), LimitError, VocabError.
    """
    options = replace(options or CompileOptions(), **keywords)
    begin = time.perf_counter()
    grammar.check_invariants()
    automata: list[Any] = []
    token_ids: list[list[int]] = []
    for t in grammar.terminals:
        if isinstance(t.pattern, Tokens):
            automata.append(None)
            token_ids.append(_resolve(t.name, t.pattern, vocab))
        else:
            automata.append(automaton(t.pattern, options.max_terminal_states))
            token_ids.append([])
    order = sorted(range(len(grammar.terminals)), key=lambda i: (grammar.terminals[i].priority, -i))
    ranks = [0] * len(order)
    for rank, i in enumerate(order):
        ranks[i] = rank
    core = build_core(
        vocab.core, automata, token_ids, ranks, grammar.ignore, grammar.rules, len(grammar.nonterminals),
        grammar.start, grammar.policy == "longest", options.max_lr_states, options.max_lexer_states,
    )  # fmt: skip
    if core is None:
        raise GrammarError(f"the grammar derives nothing: {grammar.nonterminals[grammar.start]!r} has no finite word")
    if options.mode == "ahead":
        core.expand(options.progress, None)
    stats = {"seconds": time.perf_counter() - begin}
    return Constraint(
        core, vocab, tuple(t.name for t in grammar.terminals), tuple(t.origin for t in grammar.terminals), stats
    )


def _resolve(name: str, tokens: Tokens, vocab: Vocab) -> list[int]:
    if tokens.name is not None:
        found = vocab.token_name_to_id(tokens.name)
        if found is None:
            raise GrammarError(f"terminal {name!r}: the vocabulary has no special token {tokens.name!r}")
        return [found]
    for i in tokens.ids:
        if not 0 <= i < vocab.n_tokens:
            raise GrammarError(f"terminal {name!r}: token id {i} is out of range for {vocab.n_tokens} tokens")
    return sorted(tokens.ids)


def compile_regex(pattern: str, vocab: Vocab, **keywords: Any) -> Constraint:
    """Compile a regex; the whole text must match."""
    return compile(read_regex(pattern), vocab, **keywords)


def compile_gbnf(text: str, vocab: Vocab, **keywords: Any) -> Constraint:
    """Compile a GBNF/EBNF grammar with the rule ``root``."""
    return compile(read_gbnf(text), vocab, **keywords)


def compile_lark(text: str, vocab: Vocab, *, start: str = "start", **keywords: Any) -> Constraint:
    """Compile a Lark grammar."""
    return compile(read_lark(text, start=start), vocab, **keywords)


def compile_json_schema(schema: Any, vocab: Vocab, **keywords: Any) -> Constraint:
    """Compile a JSON Schema (dict, bool, JSON text, pydantic model or dataclass)."""
    from wfsa.grammar.json_schema import read_json_schema

    lowered = read_json_schema(schema)
    constraint = compile(lowered.grammar, vocab, **keywords)
    constraint.report = lowered.report
    return constraint
