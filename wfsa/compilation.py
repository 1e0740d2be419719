"""One compilation: a grammar and a vocabulary in, the engine's tables out, within the limits of its options.

    :class:`Compilation`   the options, progress, times by stage and limits of one call, whatever is compiled in it
    :func:`build_tables`   the stages behind the front ends

Both :mod:`wfsa.compiler` and the constraints themselves compile: a constraint of a schema explains a refused token by
compiling single keywords (wfsa/explain.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Final, NamedTuple, get_args

from wfsa._ext.constraint import ConstraintCore, build_core, deriving
from wfsa._ext.regular import Automaton, automaton
from wfsa.arguments import known_fields, refuse_unknown
from wfsa.collector import MOST_SECONDS, HeldCollector
from wfsa.compile_options import CompileOptions
from wfsa.errors import GrammarError, LimitError, SchemaError
from wfsa.grammar import language
from wfsa.grammar.allowance import Allowance, Exhausted, check
from wfsa.grammar.boundary import Boundary
from wfsa.grammar.ir import Grammar, Match, Tokens
from wfsa.grammar.unproductive import why_nothing
from wfsa.vocab import Vocab, require_vocab

language.use(automaton, deriving)  # for the questions of the front ends
_MATCHES: Final = {match: number for number, match in enumerate(get_args(Match))}  # as in ext/lexer/terminals.hpp


@dataclass(frozen=True, slots=True)
class CompiledTerminal:
    """A terminal as the engine takes it: an automaton, or where that is None the tokens it stands for."""

    automaton: Automaton | None
    token_ids: list[int]
    rank: int  # at equal length the higher one wins, and all of the same one do
    match: int  # how it ends, by `_MATCHES`


class TooLarge(NamedTuple):
    """A terminal with more states than the options allow."""

    message: str
    origin: str  # the place in the schema or grammar; "" if it is not known


class _Cancelled(Exhausted):
    """`options.progress` has raised an error within a long step."""


class Compilation:
    """One compilation: its options, its progress, the time by stage, and what it may use; a context manager.

    It is the boundary of all stages: what is no error of wfsa becomes one, but for what `options.progress` raises.
    """

    def __init__(self, function: str, options: CompileOptions | None, keywords: Mapping[str, Any]) -> None:
        of_schemas = function in ("compile_json_schema", "compile_tools", "compile_structural_tag")
        self._boundary = Boundary(SchemaError if of_schemas else GrammarError)
        self._of_caller: BaseException | None = None  # what `options.progress` has raised
        refuse_unknown(function, keywords, known_fields(CompileOptions), schema_options=of_schemas)
        self.options = replace(options or CompileOptions(), **keywords)
        self.begin = self.last = time.perf_counter()
        self.stage, self.fraction = "front end", 0.0
        self.stages: dict[str, float] = {}
        self.costliest: Callable[[], str] = str  # says what costs most, once that is known
        self._collector = HeldCollector()
        self._allowance = Allowance(
            self.options.max_seconds, self.options.max_memory, self.begin, self._collector.let_go, MOST_SECONDS,
            self._poll if self.options.progress is not None else None,
        )  # fmt: skip

    def __enter__(self) -> Compilation:
        self._allowance.__enter__()
        self._collector.hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exhausted):
            self.costliest = str  # lets go of the grammar and its terminals before the collector looks at what is left
        self._collector.let_go()
        self._allowance.__exit__(kind, error, trace)
        if self._of_caller is not None and isinstance(error, _Cancelled):
            raise self._of_caller
        if isinstance(error, Exhausted):
            limit = "max_seconds" if str(error).endswith("s") else "max_memory"
            what = f"compiling passed {error} in stage {self.stage!r}; raise CompileOptions.{limit}"
            if self.options.mode == "ahead" and self.stage not in ("front end", "terminals", "LR automaton"):
                what += " or use mode='lazy'"
            raise LimitError("; ".join(filter(None, (what, self.costliest())))) from None
        if error is not self._of_caller:
            self._boundary.__exit__(kind, error, trace)

    def tick(self, stage: str, fraction: float) -> None:
        now = time.perf_counter()
        self.stages[self.stage] = self.stages.get(self.stage, 0.0) + now - self.last
        self.last, self.stage = now, stage
        self.fraction = fraction
        self._report()

    def _report(self) -> None:
        if self.options.progress is not None:
            try:
                self.options.progress(self.stage, self.fraction)
            except BaseException as error:
                self._of_caller = error
                raise

    def _poll(self) -> None:
        """Report the same again within a long step; what `options.progress` raises passes the boundaries of readers."""
        try:
            self._report()
        except BaseException:
            raise _Cancelled from None

    def seconds(self) -> float:
        return time.perf_counter() - self.begin

    def left(self) -> float:
        """Seconds that may still be used."""
        limit = self.options.max_seconds
        return float("inf") if limit is None else max(0.0, limit - self.seconds())

    def finish(self) -> dict[str, float]:
        self.tick("done", 1.0)
        return {name: seconds for name, seconds in self.stages.items() if name != "done"}


def build_tables(grammar: Grammar, vocab: Vocab, run: Compilation) -> ConstraintCore | TooLarge:
    """The engine's tables of a grammar; a terminal that is too large is returned.

    Raises GrammarError (nothing can be derived), LimitError, VocabError.
    """
    require_vocab(vocab)
    options = run.options
    grammar.check_invariants()
    run.tick("terminals", 0.0)
    terminals = _terminals(grammar, vocab, run)
    if isinstance(terminals, TooLarge):
        return terminals
    run.tick("LR automaton", 0.0)
    run.costliest = partial(_costliest, grammar, terminals)
    try:
        core = build_core(vocab.core, grammar, terminals, options.max_lr_states, options.max_lexer_states)
        if core is None:
            raise GrammarError(why_nothing(grammar, _empty(terminals)))
        core.set_budget(options.max_grown_bytes)
        check()
        if options.mode == "ahead":
            core.expand(run.tick, check)
        elif options.mode == "background":
            core.expand_in_background()
    except LimitError as e:
        raise LimitError(f"{e}; {run.costliest()}") from None
    return core


def _terminals(grammar: Grammar, vocab: Vocab, run: Compilation) -> list[CompiledTerminal] | TooLarge:
    """Each terminal's automaton, or the tokens that it stands for."""
    out = []
    ranks = _ranks(grammar)
    for number, t in enumerate(grammar.terminals):
        if isinstance(t.pattern, Tokens):
            out.append(CompiledTerminal(None, _resolve(t.name, t.pattern, vocab), ranks[number], _MATCHES[t.match]))
        else:
            try:
                dfa = automaton(t.pattern, run.options.max_terminal_states)
            except LimitError as e:
                where = f" at {t.origin}" if t.origin else ""
                remedy = "raise CompileOptions.max_terminal_states"
                return TooLarge(f"terminal {t.name!r}{where}: {e}; {remedy}", t.origin)
            except RecursionError:
                where = f" at {t.origin}" if t.origin else ""
                raise LimitError(f"terminal {t.name!r} is nested too deeply; flatten it{where}") from None
            out.append(CompiledTerminal(dfa, [], ranks[number], _MATCHES[t.match]))
        run.tick("terminals", (number + 1) / len(grammar.terminals))
        check()
    return out


def _resolve(name: str, tokens: Tokens, vocab: Vocab) -> list[int]:
    if tokens.name is not None:
        found = vocab.token_name_to_id(tokens.name)
        if found is None:
            raise GrammarError(f"terminal {name!r}: the vocabulary has no special token {tokens.name!r}")
        return [found]
    if tokens.others:
        excluded = {*tokens.ids, *vocab.eos_ids.tolist()}
        return [i for i in range(vocab.n_tokens) if i not in excluded]
    for i in tokens.ids:
        if not 0 <= i < vocab.n_tokens:
            raise GrammarError(f"terminal {name!r}: token id {i} is out of range for {vocab.n_tokens} tokens")
    return sorted(tokens.ids)


def _empty(terminals: list[CompiledTerminal]) -> list[int]:
    """The terminals that match no text."""
    return [
        number for number, terminal in enumerate(terminals)
        if terminal.automaton is not None and not terminal.automaton.arrays()[4].any()
    ]  # fmt: skip


def _ranks(grammar: Grammar) -> list[int]:
    """By terminal, its preference at equal length."""
    if grammar.ties == "all":
        priorities = sorted({t.priority for t in grammar.terminals})
        return [priorities.index(t.priority) for t in grammar.terminals]
    order = sorted(range(len(grammar.terminals)), key=lambda i: (grammar.terminals[i].priority, -i))
    ranks = {i: rank for rank, i in enumerate(order)}
    return [ranks[i] for i in range(len(order))]


def _costliest(grammar: Grammar, terminals: list[CompiledTerminal]) -> str:
    """The terminal and the rule that cost most, for the message of a LimitError."""
    sizes = [(0 if t.automaton is None else t.automaton.n_states, -i) for i, t in enumerate(terminals)]
    terminal = grammar.terminals[-max(sizes)[1]] if sizes else None
    lhs, rhs = max(grammar.rules, key=lambda rule: len(rule[1]))
    parts = [f"the longest rule is one of {grammar.nonterminals[lhs]!r} with {len(rhs)} symbols"]
    if terminal is not None:
        where = f" at {terminal.origin}" if terminal.origin else ""
        parts.append(f"the largest terminal is {terminal.name!r}{where} with {max(sizes)[0]} states")
    return "; ".join(parts)
