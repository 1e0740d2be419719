"""The compiler's driver: a grammar and a vocabulary in, a constraint out.

    front end            wfsa.grammar.*          text -> Grammar
    terminals            ext/regular/dfa.hpp             regular trees -> minimal byte DFAs
    normalise            ext/parser/normalise.hpp       rules -> binary rules without ε
    LR automaton         ext/parser/lr0.hpp             binary rules -> LR(0) states and gotos
    lexer states         ext/lexer/lexer.hpp           contexts -> lexer DFA            } on demand in "lazy" mode,
    profiles             ext/profiles/profile.hpp         lexer state × vocabulary         } all that can be reached
    parser DWA           ext/tails/parser_dwa.hpp      tails × LR states                } in "ahead" mode

In "background" mode a thread of the process does the latter after the constraint has been returned.
"""

from __future__ import annotations

import logging
import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from wfsa._ext.constraint import build_core
from wfsa._ext.regular import Automaton, automaton
from wfsa.arguments import known_fields, refuse_unknown
from wfsa.calls import CallReader
from wfsa.collector import MOST_SECONDS, HeldCollector
from wfsa.compile_options import CompileKeywords, CompileOptions
from wfsa.errors import GrammarError, LimitError, SchemaError, SchemaWarning, WfsaError
from wfsa.explain import compile_parts_with
from wfsa.grammar.allowance import Allowance, Exhausted, check
from wfsa.grammar.boundary import Boundary
from wfsa.grammar.gbnf import read_gbnf
from wfsa.grammar.guidance.reader import LarkDialect, read_any_lark
from wfsa.grammar.ir import Grammar, Match, Tokens
from wfsa.grammar.json_schema import (
    LoweredSchema,
    SchemaOptions,
    SchemaReport,
    SchemaSource,
    read_json_schema,
    read_tools,
)
from wfsa.grammar.json_schema.contradiction import Place, contradiction, contradiction_text
from wfsa.grammar.json_schema.lowering import NoDocument
from wfsa.grammar.json_schema.misspelt import Slip, slips_text
from wfsa.grammar.json_schema.sources import schema_of
from wfsa.grammar.json_schema.tools import is_response_format, listed_tools
from wfsa.grammar.regex.grammar import read_regex
from wfsa.grammar.structural_tag import read_structural_tag
from wfsa.grammar.structural_tag.tools import tools_tag
from wfsa.grammar.unproductive import why_nothing
from wfsa.grammar_constraint import GrammarConstraint
from wfsa.vocab import Vocab, require_vocab

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LOG: Final = logging.getLogger("wfsa")  # no handler: what is done with it is the application's choice
_MATCHES: Final = {match: number for number, match in enumerate(get_args(Match))}  # as in ext/lexer/terminals.hpp
_CONTRADICTION_SECONDS = 5.0  # of processor time, for the message of a schema that nothing satisfies


@dataclass(frozen=True, slots=True)
class CompiledTerminal:
    """A terminal as the engine takes it: an automaton, or where that is None the tokens it stands for."""

    automaton: Automaton | None
    token_ids: list[int]
    rank: int  # at equal length the higher one wins, and all of the same one do
    match: int  # how it ends, by `_MATCHES`


def compile(
    grammar: Grammar, vocab: Vocab, options: CompileOptions | None = None, **keywords: Unpack[CompileKeywords]
) -> GrammarConstraint:
    """Compile a grammar for a vocabulary.  Keywords are fields of CompileOptions.

    Raises GrammarError (nothing can be derived, undefined symbols), LimitError, VocabError.
    """
    with _Run("compile", options, keywords) as run:
        return _compiled(grammar, vocab, run)


def _compile(
    grammar: Grammar, vocab: Vocab, run: _Run,
    report: SchemaReport | None = None, source: SchemaSource | None = None,
) -> GrammarConstraint | _TooLarge:  # fmt: skip
    """The same; a terminal that is too large is returned."""
    require_vocab(vocab)
    options = run.options
    grammar.check_invariants()
    run.tick("terminals", 0.0)
    terminals = _terminals(grammar, vocab, run)
    if isinstance(terminals, _TooLarge):
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
    stages, seconds = run.finish(), run.seconds()
    names, origins = tuple(t.name for t in grammar.terminals), tuple(t.origin for t in grammar.terminals)
    constraint = GrammarConstraint(
        core, vocab, names, origins, {"seconds": seconds, "stages": stages}, report, source, grammar.attributes
    )
    if _LOG.isEnabledFor(logging.DEBUG):
        times = ", ".join(f"{name} {1000 * spent:.1f}" for name, spent in stages.items())
        _LOG.debug("compiled %r, mode %s, in %.1f ms (%s)", constraint, options.mode, 1000 * seconds, times)
    return constraint


def _terminals(grammar: Grammar, vocab: Vocab, run: _Run) -> list[CompiledTerminal] | _TooLarge:
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
                return _TooLarge(f"terminal {t.name!r}{where}: {e}; {remedy}", t.origin)
            except RecursionError:
                where = f" at {t.origin}" if t.origin else ""
                raise LimitError(f"terminal {t.name!r} is nested too deeply; flatten it{where}") from None
            out.append(CompiledTerminal(dfa, [], ranks[number], _MATCHES[t.match]))
        run.tick("terminals", (number + 1) / len(grammar.terminals))
        check()
    return out


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


class _TooLarge(NamedTuple):
    """A terminal with more states than the options allow."""

    message: str
    origin: str  # the place in the schema or grammar; "" if it is not known


class _Cancelled(Exhausted):
    """`options.progress` has raised an error within a long step."""


class _Run:
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

    def __enter__(self) -> _Run:
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


def compile_regex(
    pattern: str | re.Pattern[str],
    vocab: Vocab,
    *,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> GrammarConstraint:
    """Compile a regex, a text or ``re.compile(...)`` with its flags; the whole text must match.

    Raises GrammarError (no pattern, or none of a regular language), LimitError, VocabError.
    """
    with _Run("compile_regex", options, keywords) as run:
        return _compiled(read_regex(_pattern_text(pattern)), vocab, run)


def _pattern_text(pattern: Any) -> Any:
    """The text of a compiled pattern, with its flags in front; anything else as it is."""
    if not isinstance(pattern, re.Pattern) or isinstance(pattern.pattern, bytes):
        return pattern
    flags = "".join(letter for letter in "aimsx" if pattern.flags & re.RegexFlag[letter.upper()])
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern


def compile_gbnf(
    text: str, vocab: Vocab, *, options: CompileOptions | None = None, **keywords: Unpack[CompileKeywords]
) -> GrammarConstraint:
    """Compile a GBNF/EBNF grammar with the rule ``root``.

    Raises GrammarError (with the place), LimitError, VocabError.
    """
    with _Run("compile_gbnf", options, keywords) as run:
        return _compiled(read_gbnf(text), vocab, run)


def compile_lark(
    text: str,
    vocab: Vocab,
    *,
    start: str = "start",
    dialect: LarkDialect = "auto",
    grammars: Mapping[str, Any] | None = None,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> GrammarConstraint:
    """Compile a Lark grammar, in Lark's own dialect or in llguidance's (docs/guidance.md).

    `dialect`: "lark", "llguidance", or "auto": llguidance's if the text uses a construct that Lark has not.
    `grammars`: what ``@name`` leads to under llguidance's, Lark text or a JSON Schema by name.
    Raises GrammarError, LimitError, VocabError.  Warns (GrammarWarning) of what is kept but not enforced.
    """
    with _Run("compile_lark", options, keywords) as run:
        return _compiled(read_any_lark(text, dialect=dialect, start=start, grammars=grammars), vocab, run)


def compile_json_schema(
    schema: Any,
    vocab: Vocab,
    *,
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> GrammarConstraint:
    """Compile a JSON Schema: a dict, a boolean, JSON text, a type that pydantic knows, or a function's arguments.

    Objects of a type have the members that the type names and no others, unless it keeps extra members; a dict keeps
    its meaning.
    ``constraint.report`` says per JSON pointer what is enforced and which spellings are refused.
    Raises SchemaError, LimitError, VocabError.  Warns (SchemaWarning) of keywords that are probably misspelt.
    """
    schema_options = schema_options or SchemaOptions()
    try:
        with _Run("compile_json_schema", options, keywords) as run:
            if not isinstance(schema, (dict, bool)):
                schema = schema_of(schema)
            constraint, slips = _compile_read(read_json_schema, schema, schema_options, vocab, run)
    except NoDocument as e:
        places = _contradiction(schema, schema_options, vocab, min(_CONTRADICTION_SECONDS, run.left()))
        if not places:
            raise
        raise NoDocument(f"no document satisfies the schema: {contradiction_text(places)}") from e
    if slips:
        warnings.warn(slips_text(slips), SchemaWarning, stacklevel=2)
    return constraint


def _compile_part(grammar: Grammar, vocab: Vocab, seconds: float) -> GrammarConstraint:
    """A keyword by itself, for an explanation."""
    return compile(grammar, vocab, CompileOptions(mode="lazy", max_seconds=seconds))


compile_parts_with(_compile_part)


def _contradiction(schema: Any, options: SchemaOptions, vocab: Vocab, seconds: float) -> list[Place]:
    """The keywords that exclude each other, so far as they are found in so many seconds of the processor."""
    until = time.thread_time() + seconds
    lazy = CompileOptions(mode="lazy", max_seconds=2 * seconds)

    def is_empty(some: Any) -> bool:
        if time.thread_time() > until:
            return False
        try:
            with _Run("compile_json_schema", lazy, {}) as run:
                _compile_read(read_json_schema, some, options.as_written(), vocab, run)
        except NoDocument:
            return True
        except WfsaError:
            pass
        return False

    try:
        # Under options that close objects, fewer keywords may mean fewer documents.
        return contradiction(schema, options.as_written(), is_empty)
    except Exception:  # this is about the message only: the schema has no document
        return []


def compile_tools(
    tools: Any,
    vocab: Vocab,
    *,
    tool_choice: Any = None,
    parallel: bool = True,
    format: str | None = None,
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> GrammarConstraint:
    """Compile a list of tools to answers that call them.

    The tools are an OpenAI, MCP or Anthropic list, a list of pydantic models or Python functions, or a dict of these by
    name; a ``response_format`` is taken, too, and then the constraint is for its documents
    (wfsa/grammar/json_schema/tools.py lists the forms).
    ``constraint.calls(text)`` reads the calls of an answer, with arguments as the types of the tools say.

    Without a `format`: one call, ``{"name": <tool>, "arguments": {...}}``, and nothing else.
    format: how the model's chat template writes calls: "hermes", "llama3", "mistral", "deepseek_v31" and so on, as in
    `wfsa.grammar.structural_tag.tools.FORMATS`.  Then `tool_choice` is "auto", the default: text and calls; "required":
    at least one call; "none": text without a call; or a tool's name, or OpenAI's object for one: calls of that tool.
    `parallel`: several calls in an answer.

    Raises SchemaError, LimitError, VocabError.  Warns (SchemaWarning) of keywords that are probably misspelt.
    """
    schema_options = schema_options or SchemaOptions()
    if format is not None:
        listed = listed_tools(tools)
        tag = tools_tag(listed, tool_choice or "auto", parallel, format)
        constraint = compile_structural_tag(tag, vocab, schema_options=schema_options, options=options, **keywords)
        return replace(constraint, _call_reader=CallReader(tuple(listed), format, schema_options))
    if tool_choice is not None:
        raise SchemaError("tool_choice asks for the format in which the model writes calls: format='hermes'; at $")
    with _Run("compile_tools", options, keywords) as run:
        reader = None
        if not is_response_format(tools):
            tools = listed_tools(tools)
            reader = CallReader(tuple(tools), None, schema_options)
        constraint, slips = _compile_read(read_tools, tools, schema_options, vocab, run)
    if slips:
        warnings.warn(slips_text(slips), SchemaWarning, stacklevel=2)
    return replace(constraint, _call_reader=reader)


def compile_structural_tag(
    tag: Any,
    vocab: Vocab,
    *,
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
    **keywords: Unpack[CompileKeywords],
) -> GrammarConstraint:
    """Compile a structural tag: text with free parts, tags and calls in it.

    `tag` is a dict, or JSON text of one, as XGrammar, vLLM and SGLang take it (wfsa/grammar/structural_tag/lowering.py
    lists the formats), in its older shape, too.  `schema_options` are for the schemas in it.
    ``constraint.report`` says per JSON pointer what of them is enforced; ``uniqueItems`` is not, inside a tag.
    Raises SchemaError (ends in the place: ``at $.format.tags[2].begin``), GrammarError, LimitError, VocabError.
    """
    names = _TokenNames(require_vocab(vocab))

    def read(tag: Any, schema_options: SchemaOptions, dropped: frozenset[str]) -> LoweredSchema:
        return read_structural_tag(tag, names, schema_options, dropped)

    with _Run("compile_structural_tag", options, keywords) as run:
        constraint, slips = _compile_read(read, tag, schema_options or SchemaOptions(), vocab, run)
    if slips:
        warnings.warn(slips_text(slips), SchemaWarning, stacklevel=2)
    return constraint


class _TokenNames:
    """What a structural tag asks of a vocabulary."""

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab

    def ids_of(self, text: str) -> list[int]:
        return self._vocab.ids_of_text(text)

    def special_names(self) -> dict[str, int]:
        ends = set(self._vocab.eos_ids.tolist())
        return {name: number for name, number in self._vocab.special_names.items() if number not in ends}

    def is_token(self, number: int) -> bool:
        return 0 <= number < self._vocab.n_tokens


def _compiled(grammar: Grammar, vocab: Vocab, run: _Run) -> GrammarConstraint:
    made = _compile(grammar, vocab, run)
    if isinstance(made, _TooLarge):
        raise LimitError(made.message)
    return made


def _compile_read(
    read: Callable[..., LoweredSchema], source: Any, schema_options: SchemaOptions, vocab: Vocab, run: _Run
) -> tuple[GrammarConstraint, tuple[Slip, ...]]:
    """Lower and compile; if lenient, what makes a terminal too large is dropped and everything is done again.

    Returns the constraint, and the keywords of the schema that are probably misspelt.
    """
    require_vocab(vocab)
    dropped: frozenset[str] = frozenset()
    while True:
        lowered = read(source, schema_options, dropped)
        for lost in lowered.widenings:
            _LOG.debug("not enforced: %s at %s (%s)", lost.keyword or "conditions", lost.path, lost.why)
        try:
            made = _compile(lowered.grammar, vocab, run, lowered.report, lowered.source)
        except GrammarError as error:
            raise NoDocument(f"no document satisfies the schema ({error}); at $") from None
        if not isinstance(made, _TooLarge):
            return made, lowered.slips
        if not schema_options.lenient or not made.origin or made.origin in dropped:
            raise LimitError(made.message)
        dropped |= {made.origin}
