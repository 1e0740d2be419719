"""The LR(0) automaton of a normal form (Knuth 1965): states, gotos, and the rules that are complete in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from wfsa.errors import LimitError
from wfsa.reference.normal_form import NormalForm, Symbol

Item = tuple[int, int]  # a rule, and how many of its symbols have been read


@dataclass(frozen=True)
class LrTables:
    """State 0 is the start, which no goto leads to. A symbol is a terminal's number, or ~ a nonterminal's number."""

    form: NormalForm
    goto: tuple[dict[Symbol, int], ...]
    complete: tuple[tuple[tuple[int, tuple[Symbol, ...]], ...], ...]  # by state: rules, (nonterminal, symbols)
    symbol: tuple[Symbol | None, ...]  # by state: the symbol that leads to it

    @property
    def n_states(self) -> int:
        return len(self.goto)

    def as_text(self, name: Callable[[Symbol], str]) -> str:
        """Returns one line per state: the symbol that leads to it, its gotos, and the rules complete in it."""
        lines = []
        for state, row in enumerate(self.goto):
            symbol = self.symbol[state]
            parts = [f"{name(read)} {to}" for read, to in row.items()]
            parts += [f"{name(~lhs)} -> {' '.join(map(name, rhs))}" for lhs, rhs in self.complete[state]]
            lines.append(f"{state}{'' if symbol is None else f' {name(symbol)}'}: {', '.join(parts)}".rstrip())
        return "\n".join(lines)

    @cached_property
    def with_symbol(self) -> dict[Symbol | None, list[int]]:
        """The states that each symbol leads to."""
        out: dict[Symbol | None, list[int]] = {}
        for state, symbol in enumerate(self.symbol):
            out.setdefault(symbol, []).append(state)
        return out

    @cached_property
    def reading(self) -> dict[Symbol, list[int]]:
        """The states that have a goto on each symbol."""
        out: dict[Symbol, list[int]] = {}
        for state, row in enumerate(self.goto):
            for symbol in row:
                out.setdefault(symbol, []).append(state)
        return out


def lr_tables(form: NormalForm, most_items: int | None = None) -> LrTables:
    """Returns the LR(0) tables. Raises LimitError for more than `most_items` items, which can be exponentially many."""
    by_lhs: dict[int, list[int]] = {}
    for number, (lhs, _) in enumerate(form.rules):
        by_lhs.setdefault(lhs, []).append(number)
    top = form.rules[0][0]
    kernels: list[frozenset[Item]] = [frozenset((number, 0) for number in by_lhs[top])]
    numbers = {kernels[0]: 0}
    goto: list[dict[Symbol, int]] = []
    symbol: list[Symbol | None] = [None]
    complete: list[tuple[tuple[int, tuple[Symbol, ...]], ...]] = []
    n_items = 0
    for kernel in kernels:  # grows
        items, todo = set(kernel), list(kernel)
        while todo:
            rule, dot = todo.pop()
            rhs = form.rules[rule][1]
            if dot < len(rhs) and rhs[dot] < 0:
                new = {(number, 0) for number in by_lhs.get(~rhs[dot], ())} - items
                items |= new
                todo += new
        n_items += len(items)
        if most_items is not None and n_items > most_items:
            raise LimitError(f"the LR automaton has more than {most_items:,} items")
        after: dict[Symbol, set[Item]] = {}
        done = []
        for rule, dot in sorted(items):
            lhs, rhs = form.rules[rule]
            if dot < len(rhs):
                after.setdefault(rhs[dot], set()).add((rule, dot + 1))
            elif lhs != top:
                done.append((lhs, rhs))
        row = {}
        for read, reached in sorted(after.items()):
            key = frozenset(reached)
            if key not in numbers:
                numbers[key] = len(kernels)
                kernels.append(key)
                symbol.append(read)
            row[read] = numbers[key]
        goto.append(row)
        complete.append(tuple(sorted(set(done))))
    return LrTables(form, tuple(goto), tuple(complete), tuple(symbol))
