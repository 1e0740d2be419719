"""Right-hand sides of grammar files as expressions, for every dialect."""

from __future__ import annotations

from typing import Any

from ..allowance import check
from ..expressions import Choice, Expr, Many, Seq
from ..regular import EPSILON
from .nodes import Alternatives, Atom, Item, Maybe, Option


class RightSides:
    """Turns syntax trees into expressions.  A dialect adds its atoms; `scope` is what it needs to know of a rule."""

    def expression(self, tree: Alternatives, scope: Any) -> Expr:
        parts = [self.option(option, scope) for option in tree.options if self.holds(option, tree, scope)]
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def holds(self, option: Option, tree: Alternatives, scope: Any) -> bool:
        """Whether the alternative is one for this scope."""
        return True

    def option(self, option: Option, scope: Any) -> Expr:
        check()
        parts = [part for item in option.conjuncts[0] if (part := self.item(item, scope)) is not EPSILON]
        if not parts:
            return EPSILON
        return parts[0] if len(parts) == 1 else Seq(tuple(parts))

    def item(self, item: Item, scope: Any) -> Expr:
        """One item; repetitions that are stacked on it may be thousands, so they take no recursion."""
        stacked: list[Item] = []
        atom: Atom = item
        while isinstance(atom, Item):
            stacked.append(atom)
            atom = atom.atom
        if isinstance(atom, Alternatives):
            out = self.expression(atom, scope)
        elif isinstance(atom, Maybe):
            out = Many(self.expression(atom.body, scope), 0, 1)
        else:
            out = self.atom(atom, scope)
        for one in reversed(stacked):
            if one.written:
                out = self.repeated(out, one)
        return out

    def repeated(self, body: Expr, item: Item) -> Expr:
        """`body` as often as the item says."""
        return Many(body, item.low, item.high)

    def atom(self, atom: Atom, scope: Any) -> Expr:
        """An atom that is no group."""
        return atom  # type: ignore[no-any-return]
