r"""Definitions of a Lark grammar -> IR: EBNF to plain rules, templates to instances, literals to terminals.

Problem.  `lark.load_grammar.Grammar.compile` does this too, but for an LALR parser that builds a tree: it multiplies
out every optional (``[a] [b] [c]`` gives eight alternatives; SQL's 60 rules become 378) and needs 42 ms for SQL.
Only recognition matters here, so an optional becomes a nonterminal with an empty alternative, and equal
subexpressions of all rules share one nonterminal: linear in the text, one pass, 1.5 ms.

What becomes of what (X is the helper nonterminal; the alternatives stand for any number of them):

    (a | b)   X: a | b         inlined where there is one alternative or nothing beside it
    [a]  a?   X: a | ε
    a*        X: ε | X a       left-recursive: the LR stack does not grow
    a+        X: a | X a
    a~n..m    small m:  X: Cn | ... | Cm   with C2: a a, C3: C2 a, ...     (2 m rules, one stack entry)
              large m:  a counter in base 16, D1: a^16, D2: D1^16, ...       (rules and stack logarithmic in m)

Neither form of a repetition has an LR conflict of its own.  Lark's expansion of a small one has m²/2 symbols.

Templates are instantiated once per list of arguments, as in Lark, and a template that grows its own argument without
end is an error instead of a hang.  Aliases, rule priorities and the ``?`` and ``!`` prefixes shape trees, not the
language.  Lark's "Rules defined twice" (colliding optionals such as ``"a"? "a"?``) is about trees as well: accepted.

Names of anonymous terminals can break ties (`lark_order.in_order`), so literals are named in Lark's order:
rule by rule, the deepest first, left to right (`Tree.iter_subtrees` on trees without their ``value`` nodes).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from wfsa.errors import GrammarError, GrammarWarning

from ..allowance import check
from ..ir import Grammar, Terminal, Tokens
from ..notation.nodes import Alternatives, Atom, CharRange, Item, Literal, Maybe, Name
from ..regex.pattern import sees_outside
from .definitions import Definition, File, UndefinedSymbol, undefined
from .order import Candidate, Names, in_order
from .terminals import (
    Pattern,
    TerminalPatterns,
    check_counts,
    declared_only,
    literal_pattern,
    range_pattern,
    regular,
    tokens_terminal,
)

MAX_INSTANCES = 10_000  # of templates
LINEAR = 64  # repetitions up to this count use a chain, above it a counter
BASE = 16

T = TypeVar("T")
Rhs = tuple[int, ...]
Env = Mapping[str, "int | str"]  # template parameter -> symbol, or name of a template


class Lowering:
    """One grammar on its way into the IR.  Symbols as in the IR, but terminals are numbered as met."""

    def __init__(self, file: File) -> None:
        self.file = file  # whose names are being lowered; here the outermost
        self.definitions = definitions = file.definitions
        self.ignore = file.ignored
        self.origins = file.lines
        self.patterns = TerminalPatterns(definitions)
        for name, d in definitions.items():
            if d.is_terminal and d.parts:
                self.at(name, partial(self.patterns.by_name, name))
        self.names = Names(self.patterns.done)
        self.terminals: list[str | Pattern | Tokens] = []  # by provisional number: a name, or what is not named yet
        self.terminal_ids: dict[str | Pattern | Tokens, int] = {}
        self.pending: list[tuple[int, Pattern]] = []  # (depth, literal) of the rule at hand
        self.nonterminals: list[str] = []
        self.origin: list[str] = []
        self.rules: list[list[Rhs]] = []  # per nonterminal
        self.helpers: dict[tuple[Any, ...], int] = {}
        self.rule_symbols = {
            name: self.nonterminal(name, name) for name, d in definitions.items() if not d.is_terminal and not d.params
        }
        self.instances: dict[tuple[str, tuple[int | str, ...]], int] = {}
        self.todo: list[tuple[int, str, Env]] = []
        self.rule_name = ""

    def at(self, name: str, action: Callable[[], T]) -> T:
        """Run `action`, with the name and line of what is being read in front of its errors."""
        try:
            return action()
        except UndefinedSymbol:
            raise
        except GrammarError as e:
            definition = self.definitions.get(name)
            kind = "terminal" if definition is None or definition.is_terminal else "rule"
            line = f" (line {self.origins[name]})" if name in self.origins else ""
            raise GrammarError(f"{kind} {self.shown(name)}{line}: {e}") from None

    def shown(self, name: str) -> str:
        """A name for messages and for the IR: anonymous terminals go by their pattern."""
        if not name.startswith("__"):
            return name
        pattern = self.names.patterns.get(name) if hasattr(self, "names") else None
        return "in %ignore" if pattern is None else repr(pattern.value)

    def run(self, start: str) -> Grammar:
        if start not in self.rule_symbols:
            kind = "a terminal, not a rule" if start in self.patterns.done else "not defined"
            raise GrammarError(f"the start rule {start!r} is {kind}; rules are: {some(self.rule_symbols)}")
        for name, symbol in self.rule_symbols.items():
            self.lower(symbol, name, {})
        for symbol, name, env in self.todo:  # grows while it is walked
            self.lower(symbol, name, env)
        return self.frozen(self.rule_symbols[start])

    def lower(self, symbol: int, name: str, env: Env) -> None:
        check()
        self.rule_name = name
        definition = self.definitions[name]
        if not definition.parts:  # declared only
            return
        self.rules[~symbol] = self.at(name, lambda: self.body(definition, env))
        self.pending.sort(key=lambda p: -p[0])  # stable: left to right in one level
        for _, pattern in self.pending:
            self.terminals[self.terminal_ids[pattern]] = self.names.name(pattern)
        self.pending.clear()

    # -- symbols -------------------------------------------------------------------------------------------------

    def nonterminal(self, name: str, rule: str) -> int:
        self.nonterminals.append(name)
        self.origin.append(f"line {self.origins[rule]}" if rule in self.origins else rule)
        self.rules.append([])
        return ~(len(self.nonterminals) - 1)

    def helper(self, kind: str, key: Any, alternatives: list[Rhs]) -> int:
        """The nonterminal for these alternatives, shared by all places that need it."""
        got = self.helpers.get((kind, key))
        if got is None:
            name = f"{self.rule_name}.{kind}{len(self.nonterminals)}"
            got = self.helpers[kind, key] = self.nonterminal(name, self.rule_name)
            self.rules[~got] = alternatives
        return got

    def terminal(self, what: str | Pattern | Tokens) -> int:
        got = self.terminal_ids.get(what)
        if got is None:
            got = self.terminal_ids[what] = len(self.terminals)
            self.terminals.append(what)
        return got

    def literal(self, pattern: Pattern, depth: int) -> int:
        name = self.names.by_pattern.get(pattern)
        if name is not None:
            # Named by an earlier rule (then known under the pattern), or defined by the grammar.
            return self.terminal_ids[pattern] if pattern in self.terminal_ids else self.terminal(name)
        self.pending.append((depth, pattern))
        return self.terminal(pattern)

    # -- right-hand sides ----------------------------------------------------------------------------------------

    def body(self, definition: Definition, env: Env) -> list[Rhs]:
        """The alternatives of a rule; what an %extend adds is one more group."""
        out: dict[Rhs, None] = {}
        for tree, self.file in definition.parts:
            depth = 0 if tree is definition.parts[-1].tree else 1
            out.update(dict.fromkeys(self.alternatives(tree, depth, env)))
        return list(out)

    def alternatives(self, tree: Alternatives, depth: int, env: Env) -> list[Rhs]:
        """The alternatives of a group at this depth; what stands alone in an alternative is spliced in."""
        out: dict[Rhs, None] = {}
        for option in tree.options:
            at = depth + 3 if option.has_alias else depth + 2
            items = option.conjuncts[0]
            if len(items) == 1:
                out.update(dict.fromkeys(self.choices(items[0], at, env)))
            else:
                rhs: list[int] = []
                for item in items:
                    rhs += self.item(item, at, env)
                out[tuple(rhs)] = None
        return list(out)

    def choices(self, item: Item, depth: int, env: Env) -> list[Rhs]:
        """The alternatives of one item."""
        if not item.written:
            return self.atom_choices(item.atom, depth, env)
        if item.written == "?":
            return with_empty(self.atom_choices(item.atom, depth + 1, env))
        return [self.item(item, depth, env)]

    def atom_choices(self, atom: Atom, depth: int, env: Env) -> list[Rhs]:
        if isinstance(atom, Alternatives):
            return self.alternatives(atom, depth, env)
        if isinstance(atom, Maybe):
            return with_empty(self.alternatives(atom.body, depth + 1, env))
        return [self.value(atom, depth, env)]

    def item(self, item: Item, depth: int, env: Env) -> Rhs:
        """The symbols for one item of a sequence."""
        written = item.written
        if not written and not isinstance(item.atom, (Alternatives, Maybe)):
            return self.value(item.atom, depth, env)
        if not written or written == "?":
            return self.group(self.choices(item, depth, env))
        body = self.atom_choices(item.atom, depth + 1, env)
        if written == "*" or written == "+":
            return self.loop(body, written == "+")
        check_counts(item)
        return self.repeat(body, item.low, item.low if item.high is None else item.high)

    def value(self, atom: Atom, depth: int, env: Env) -> Rhs:
        if isinstance(atom, Name):
            symbol = self.instance(atom, depth, env) if atom.arguments else self.named(atom, env)
            if isinstance(symbol, str):
                raise GrammarError(f"template {symbol} is used without arguments")
            return (symbol,)
        if isinstance(atom, Literal):
            return (self.literal(literal_pattern(atom.written), depth),)
        if isinstance(atom, CharRange):
            return (self.literal(range_pattern(atom.first, atom.last), depth),)
        return (self.terminal(tokens_terminal(atom.text)),)

    def named(self, used: Name, env: Env) -> int | str:
        """The symbol for a name; a template's name stays a name."""
        name = used.name if self.file.outer is None else self.file.global_name(used.name)
        got = env.get(name)
        if got is None:
            got = self.rule_symbols.get(name)
        if got is not None:
            return got
        if name not in self.definitions:
            raise undefined(used, name, self.rule_name, False)
        return self.terminal(name) if used.is_terminal else name

    def instance(self, used: Name, depth: int, env: Env) -> int:
        """The nonterminal for a template with arguments."""
        name = self.named(used, env)
        args: list[int | str] = []
        for arg in used.arguments:
            if isinstance(arg, Name) and not arg.arguments:
                args.append(self.named(arg, env))
            else:
                args += self.value(arg, depth + 1, env)
        definition = self.definitions[name] if isinstance(name, str) else None
        if definition is None or not isinstance(name, str):
            raise GrammarError(f"{used.name} is used with arguments but is not a template")
        if len(args) != len(definition.params):
            raise GrammarError(f"template {name} takes {len(definition.params)} arguments, not {len(args)}")
        key = (name, tuple(args))
        got = self.instances.get(key)
        if got is None:
            if len(self.instances) >= MAX_INSTANCES:
                raise GrammarError(f"template {name} makes more than {MAX_INSTANCES:,} instances: does it end?")
            got = self.instances[key] = self.nonterminal(f"{name}{{{','.join(map(self.arg_name, args))}}}", name)
            self.todo.append((got, name, dict(zip(definition.params, args, strict=True))))
        return got

    def arg_name(self, arg: int | str) -> str:
        if isinstance(arg, str):
            return arg
        if arg < 0:
            name = self.nonterminals[~arg]
            return name if len(name) < 60 else f"N{~arg}"
        what = self.terminals[arg]
        return what if isinstance(what, str) else repr(what.value) if isinstance(what, Pattern) else "token"

    # -- EBNF ----------------------------------------------------------------------------------------------------

    def group(self, alternatives: list[Rhs]) -> Rhs:
        if len(alternatives) == 1:
            return alternatives[0]
        kind = "opt" if () in alternatives else "group"
        return (self.helper(kind, frozenset(alternatives), alternatives),)

    def loop(self, body: list[Rhs], once: bool) -> Rhs:
        rest = [rhs for rhs in body if rhs]
        if not rest:
            return ()
        if once and len(rest) == len(body):
            x = self.group(rest)
            got = self.helper("plus", x, [x])
            if len(self.rules[~got]) == 1:  # new
                self.rules[~got] = [x, (got, *x)]
        else:
            got = self.helper("star", frozenset(rest), [()])
            if len(self.rules[~got]) == 1:
                self.rules[~got] = [(), *((got, *rhs) for rhs in rest)]
        return (got,)

    def repeat(self, body: list[Rhs], low: int, high: int) -> Rhs:
        x = self.group(body)
        if not x or high == 0:
            return ()
        if high == 1:
            return x if low == 1 else self.group([x, ()])
        if len(x) != 1:
            x = (self.helper("group", frozenset([x]), [x]),)
        if low == high:
            return self.exactly(x[0], low)
        if high <= LINEAR:
            chain = self.chain(x[0], high)
            return self.group(([()] if low == 0 else []) + [(c,) for c in chain[max(low, 1) - 1 :]])
        return self.exactly(x[0], low) + self.up_to(x[0], high - low)

    def chain(self, x: int, n: int) -> list[int]:
        """The symbols for `x` once, twice, ..., n times."""
        out = [x]
        while len(out) < n:
            out.append(self.helper("times", (x, len(out) + 1), [(out[-1], x)]))
        return out

    def power(self, x: int, i: int) -> int:
        """`x` exactly BASE**i times."""
        return x if i == 0 else self.helper("times", (x, BASE**i), [(self.power(x, i - 1),) * BASE])

    def exactly(self, x: int, n: int) -> Rhs:
        digits: list[Rhs] = []
        i = 0
        while n:
            n, digit = divmod(n, BASE)
            digits.append((self.power(x, i),) * digit if digit else ())
            i += 1
        return tuple(s for digit in reversed(digits) for s in digit)

    def up_to(self, x: int, n: int) -> Rhs:
        """`x` at most n times: fewer full blocks and any rest, or all full blocks and a smaller rest."""
        if n == 0:
            return ()
        i = 0
        while BASE ** (i + 1) <= n:
            i += 1
        block = self.power(x, i)
        full, rest = divmod(n, BASE**i)
        below = self.up_to(x, BASE**i - 1)
        out = [(block,) * j + below for j in range(full)] + [(block,) * full + self.up_to(x, rest)]
        return (self.helper("upto", (x, n), out),)

    # -- the end -------------------------------------------------------------------------------------------------

    def reachable(self, start: int) -> Iterator[int]:
        seen, stack = {start}, [start]
        while stack:
            symbol = stack.pop()
            yield symbol
            if symbol < 0:
                for rhs in self.rules[~symbol]:
                    for s in rhs:
                        if s not in seen:
                            seen.add(s)
                            stack.append(s)

    def frozen(self, start: int) -> Grammar:
        for name in self.ignore:
            if name not in self.definitions:
                raise UndefinedSymbol(f"terminal {name} is ignored but not defined")
        for name in self.ignore:
            if not self.definitions[name].parts:
                raise declared_only("terminal", name)
        ignored = [self.terminal(name) for name in dict.fromkeys(self.ignore)]
        used = set(self.reachable(start))
        for name, symbol in self.rule_symbols.items():
            if symbol in used and not self.definitions[name].parts:
                raise declared_only("rule", name)
        numbers = {~s: n for n, s in enumerate(sorted((s for s in used if s < 0), reverse=True))}
        terminals: list[Terminal] = []
        ids: dict[int, int] = {}
        candidates: list[Candidate] = []
        by_name: dict[str, int] = {}
        for t in sorted({s for s in used if s >= 0} | set(ignored)):
            what = self.terminals[t]
            if isinstance(what, Tokens):
                ids[t] = len(terminals)
                terminals.append(Terminal(what.name or f"<[{','.join(map(str, what.ids[:9]))}]>", what))
            else:
                assert isinstance(what, str)
                by_name[what] = t
                candidates.append(self.at(what, partial(self.candidate, what)))
        for c in in_order(candidates):
            ids[by_name[c.name]] = len(terminals)
            line = f"line {self.origins[c.name]}" if c.name in self.origins else ""
            terminals.append(Terminal(self.shown(c.name), c.regular, c.priority, line))
        rules = [
            (numbers[n], tuple([ids[s] if s >= 0 else ~numbers[~s] for s in rhs]))
            for n in numbers
            for rhs in self.rules[n]
        ]
        return Grammar(
            terminals=tuple(terminals),
            nonterminals=tuple(self.nonterminals[n] for n in numbers),
            rules=tuple(rules),
            start=numbers[~start],
            policy="longest",
            ignore=tuple(ids[t] for t in ignored),
            origins=tuple(self.origin[n] for n in numbers),
        )

    def candidate(self, name: str) -> Candidate:
        definition = self.definitions.get(name)
        if definition is not None and not definition.parts:
            raise declared_only("terminal", name)
        pattern = self.names.patterns[name]
        language = regular(pattern)
        if not pattern.is_str and sees_outside(pattern.value, pattern.flags):
            warnings.warn(
                f"terminal {name}: a look-around at its edge sees the terminal's own text only, not what stands "
                "beside it; so the grammar may take more than Lark's lexer does",
                GrammarWarning,
                stacklevel=2,
            )
        priority = definition.priority if definition is not None else 0
        return Candidate(name, pattern, language, priority)


def with_empty(alternatives: list[Rhs]) -> list[Rhs]:
    return alternatives if () in alternatives else [*alternatives, ()]


def some(names: Mapping[str, Any]) -> str:
    listed = list(names)
    return ", ".join(listed[:8]) + (", ..." if len(listed) > 8 else "") if listed else "none"
