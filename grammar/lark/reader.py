r"""Lark grammars -> IR, policy "longest".

    read_lark(text, start="start", import_paths=(), base_path=None) -> Grammar

What a Lark grammar means is decided by the lark package's own loader, `lark.load_grammar`: its `GrammarBuilder` holds
the definitions and does ``%import`` mangling, ``%extend``, ``%override``, ``%ignore``, templates and their validation,
and it words the errors.  Its costly steps are replaced, because they take 65 of its 69 ms on the SQL grammar while a
lazily compiled constraint has 20 ms in all:

    text -> tree         syntax.py          recursive descent; equal trees; where it fails, Lark reads again
    tree -> rules        rules.py           no multiplied-out optionals, no tree transformers, one pass
    terminals            terminals.py       Lark's joining; no ``re`` is compiled or analysed
    order of terminals   order.py           Lark's verdict on ties

and what a grammar imports from Lark's own library (``common``, ``python``, ``unicode``, ``lark``) is kept per process.
Definitions taken from there are shared between grammars and must not change; ``%extend`` changes one in place, so a
grammar with an ``%extend`` reads its imports afresh.

Differences from Lark, all in the direction of one meaning instead of several:

- Terminals match longest-first; priority decides between equal lengths (``docs/glossary.md``).  Lark's lexer tries
  terminals in an order, so that a higher priority or a longer pattern can win with a shorter match.
  Within one terminal too, ``a|ab`` is the longer of both; but a terminal with a lazy quantifier (``/".*?"/``) matches
  what Python's `re` matches (:mod:`wfsa.grammar.regex.first_match`).
- A look-ahead or look-behind sees no further than the text of its own terminal; where that makes a difference there
  is a GrammarWarning.
- Lark's check against colliding optionals (``"a"? "a"?``) is about parse trees and is not made.
- Only the grammar counts: no lexer callbacks, no postlex; what ``%declare`` names must be defined, or not used.
- ``<|tool|>`` and ``<[12,40-42]>`` in a rule name exact tokens (the first is a special token of the vocabulary).
- Relative imports are resolved against `base_path`, never against the running program's file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from lark import load_grammar as loader
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedToken
from lark.grammar import Symbol
from lark.grammar import Terminal as LarkTerminal
from lark.tree import Tree

from wfsa.errors import GrammarError, WfsaError

from ..allowance import check
from ..boundary import Boundary
from ..ir import Grammar
from ..regular import Regular
from .rules import Lowering
from .syntax import parse_statements, without_special
from .terminals import TerminalPatterns, UndefinedSymbol, regular

Mangle = Callable[[str], str]

Chain = tuple[Any, ...]


@Boundary(GrammarError)
def read_lark(
    text: str, *, start: str = "start", import_paths: Sequence[str] = (), base_path: str | None = None
) -> Grammar:
    """The grammar that the Lark text defines.

    `import_paths` are searched for ``%import name.X`` before Lark's library; `base_path` is the folder that relative
    imports (``%import .name.X``) start from.  Raises GrammarError, with a line where there is one.
    """
    if not isinstance(text, str):
        raise GrammarError(f"a Lark grammar is a str, not {type(text).__name__}")
    definitions = _Definitions([os.fspath(p) for p in import_paths], base_path, shared="%extend" not in text)
    try:
        text.encode()  # a lone surrogate has no place in a grammar
        definitions.load_grammar(text, _TOP)
        if any(d.params for d in definitions.all.values()):
            definitions.validate()  # the lowering sees the rules, but not the bodies of unused templates
        return Lowering(definitions.all, definitions.ignored, definitions.lines).run(start)
    except UndefinedSymbol as e:
        raise definitions.explained(e) from None
    except LarkError as e:
        raise GrammarError(_one_line(e)) from None
    except RecursionError:
        raise GrammarError("the grammar is nested too deeply: give inner groups names of their own") from None
    except UnicodeError as e:
        raise GrammarError(f"the grammar is not valid Unicode: {e}") from None
    except WfsaError:
        raise
    except ValueError as e:  # int() of more than 4,300 digits
        raise GrammarError(f"a number of the grammar is too long: {e}") from None


def library_terminal(path: tuple[str, ...], name: str) -> Regular:
    """The language of a terminal in one of Lark's own grammars, ``("common",), "INT"``.  Raises GrammarError."""
    definitions = _Definitions([], None, shared=True)
    try:
        definitions.do_import(path, None, {name: name})
        return regular(TerminalPatterns(definitions.all).by_name(name))
    except LarkError as e:
        raise GrammarError(_one_line(e)) from None
    except UndefinedSymbol:
        raise GrammarError(f"%import {'.'.join(path)}.{name}: there is no such terminal in Lark's library") from None


_loader: Any = loader  # for what has no annotations there
_TOP = "the grammar"
_MAX_LIBRARY = 256
_library: dict[tuple[Any, ...], dict[str, loader.Definition]] = {}  # what was imported from Lark's own grammars


class _Definitions(loader.GrammarBuilder):
    """Lark's builder with other readers in front; `load_grammar` and `do_import` do what Lark's do."""

    def __init__(self, import_paths: list[Any], base_path: str | None, shared: bool, chain: Chain = ()) -> None:
        super().__init__(False, import_paths)
        self.base_path = base_path
        self.shared = shared  # may use and fill _library
        self.chain = chain  # the files being imported, outermost first
        self.lines: dict[str, int] = {}

    @property
    def all(self) -> dict[str, loader.Definition]:
        return self._definitions

    @property
    def ignored(self) -> list[str]:
        return self._ignore_names

    def explained(self, error: GrammarError) -> GrammarError:
        """Lark's words for an undefined symbol: they name the rule that uses it."""
        try:
            self.validate()
        except LarkError as e:
            return GrammarError(_one_line(e))
        return GrammarError(str(error))

    def load_grammar(self, grammar_text: str, grammar_name: str = _TOP, mangle: Mangle | None = None) -> None:
        self._load(_tree(grammar_text, grammar_name).children, grammar_name, mangle)

    def _load(self, statements: list[Any], grammar_name: Any, mangle: Mangle | None) -> None:
        untyped: Any = self  # the package has no annotations on these methods
        imports: dict[tuple[str, ...], tuple[Any, dict[str, str]]] = {}
        for stmt in statements:
            check()
            if stmt.data == "import":
                path, base, aliases = self._import(stmt, grammar_name)
                known = imports.setdefault(path, (base, {}))
                if known[0] != base:
                    raise GrammarError(f"%import {'.'.join(path)} is both relative and absolute: rename a file")
                known[1].update(aliases)
        for path, (base, aliases) in imports.items():
            self.do_import(path, base, aliases, mangle)
        for stmt in statements:
            data = stmt.data
            if data == "rule" or data == "term":
                self._take(stmt, mangle, untyped._define)
            elif data == "override":
                self._take(stmt.children[0], mangle, partial(untyped._define, override=True))
            elif data == "extend":
                self._take(stmt.children[0], mangle, untyped._extend)
            elif data == "ignore":
                if mangle is None:  # what an imported grammar ignores stays there
                    untyped._ignore(*stmt.children)
            elif data == "declare":
                for symbol in stmt.children:
                    name = symbol.name if mangle is None else mangle(symbol.name)
                    untyped._define(name, isinstance(symbol, LarkTerminal), None)
        if mangle is not None:
            # Lark puts referenced terminals in place at once, so that a later %override of one leaves the others be.
            terminals = {name: d.tree for name, d in self._definitions.items() if d.is_term}
            try:
                _loader.resolve_term_references(terminals)
            except AssertionError:
                raise GrammarError(f"{grammar_name}: a terminal uses one that is only declared (%declare)") from None

    def _take(self, stmt: Any, mangle: Mangle | None, define: Callable[..., None]) -> None:
        check()
        untyped: Any = self
        definition = untyped._unpack_definition(stmt, mangle)
        token = stmt.children[0] if stmt.data == "term" else stmt.children[1]
        try:
            define(*definition)
        except LarkError as e:
            raise GrammarError(f"{_one_line(e)} at line {token.line}") from None
        if mangle is None:
            self.lines.setdefault(str(token), token.line)

    def _import(self, stmt: Any, grammar_name: Any) -> tuple[tuple[str, ...], Any, dict[str, str]]:
        """Path, base folder and names of one %import."""
        untyped: Any = self
        source = grammar_name
        if stmt.children[0].data == "import_rel" and grammar_name == _TOP:
            if self.base_path is None:
                path = ".".join(stmt.children[0].children)
                raise GrammarError(f"%import .{path} is relative: pass base_path, the folder that it starts from")
            source = os.path.join(self.base_path, _TOP)
        got: tuple[tuple[str, ...], Any, dict[str, str]] = untyped._unpack_import(stmt, source)
        return got

    def do_import(
        self, dotted_path: tuple[str, ...], base_path: Any, aliases: dict[str, str], base_mangle: Mangle | None = None
    ) -> None:
        name = ".".join(dotted_path)
        path, text = self._find(os.path.join(*dotted_path) + loader.EXT, base_path, name)
        key = None
        if isinstance(path, loader.PackageResource) and self.shared and base_mangle is None:
            key = (path, tuple(aliases.items()))
        imported = _library.get(key) if key is not None else None
        if imported is None:
            if path in self.chain:
                raise GrammarError(f"%import goes in a circle: {' -> '.join(map(str, [*self.chain, path]))}")
            inner: Any = _Definitions(list(self.import_paths), None, self.shared, (*self.chain, path))
            mangle = _loader._get_mangle("__".join(dotted_path), aliases, base_mangle)
            if key is not None:
                inner._load(_needed(_library_statements(path, text()), aliases), path, mangle)
            else:
                inner.load_grammar(text(), path, mangle)
            inner._remove_unused([mangle(n) for n in aliases])
            imported = inner._definitions
            if key is not None:
                if len(_library) >= _MAX_LIBRARY:
                    _library.clear()
                _library[key] = imported
        for symbol in imported:
            if symbol in self._definitions:
                raise GrammarError(f"cannot import {symbol} from {name}: it is already defined")
        self._definitions.update(imported)

    def _find(self, file: str, base_path: Any, name: str) -> tuple[Any, Callable[[], str]]:
        """The place of an imported file, in Lark's order of search, and how to read it."""
        for source in [*self.import_paths, *([base_path] if base_path is not None else [])]:
            if isinstance(source, str):
                path = os.path.join(source, file)
                if os.path.isfile(path):
                    return path, partial(_read, path)
        for folder in loader.IMPORT_PATHS if base_path is None else [base_path.path] if _is_package(base_path) else []:
            path = os.path.join(os.path.dirname(loader.__file__), folder, file)
            if os.path.isfile(path):
                return loader.PackageResource("lark", os.path.join(folder, file)), partial(_read, path)
        raise GrammarError(f"%import {name}: no file {file} in import_paths, beside the grammar or in Lark's library")


@lru_cache(maxsize=64)
def _library_statements(path: Any, text: str) -> list[Any]:
    """The statements of one of Lark's own grammars; mangling copies them, so they stay as they are."""
    statements: list[Any] = _tree(text, path).children
    return statements


def _needed(statements: list[Any], names: Iterable[str]) -> list[Any]:
    """The definitions that these names lead to, where a file holds nothing else than definitions (`common` does)."""
    if not all(stmt.data == "term" or stmt.data == "rule" for stmt in statements):
        return statements
    by_name = {str(stmt.children[0 if stmt.data == "term" else 1]): stmt for stmt in statements}
    keep: set[str] = set()
    todo = [name for name in names if name in by_name]
    while todo:
        name = todo.pop()
        if name not in keep:
            keep.add(name)
            todo += [s.name for s in _symbols(by_name[name]) if s.name in by_name]
    return [by_name[name] for name in by_name if name in keep]


def _symbols(tree: Any) -> Iterator[Any]:
    for child in tree.children:
        if isinstance(child, Tree):
            yield from _symbols(child)
        elif isinstance(child, Symbol):
            yield child


def _is_package(path: Any) -> bool:
    return isinstance(path, loader.PackageResource)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf8") as f:
            return f.read()
    except (OSError, UnicodeError) as e:
        raise GrammarError(f"cannot read the imported grammar {path}: {e}") from None


def _tree(text: str, name: Any) -> Any:
    """The statements of a grammar; Lark itself says what is wrong with a text that is none."""
    tree = parse_statements(text)
    if tree is not None:
        return tree
    plain = without_special(text)
    place = "" if name == _TOP else f"in {name}: "
    parser = _loader._get_parser()
    try:
        tree = _loader.PrepareGrammar().transform(parser.parse(plain + "\n", "start"))
    except UnexpectedToken as e:
        try:
            advice = _loader._translate_parser_exception(parser.parse, e)  # "Unclosed parenthesis"
        except Exception:  # it fails on some of its own examples (lark 1.3.1: a TypeError)
            advice = None
        where = f"at line {e.line} column {e.column}"
        message = _one_line(e)
        raise GrammarError(place + (f"{advice}, {where}: {_line(text, e.line)}" if advice else message)) from None
    except UnexpectedCharacters as e:
        where = f"line {e.line} column {e.column}"
        raise GrammarError(f"{place}unexpected input at {where}: {_line(text, e.line)}") from None
    if plain != text:
        raise GrammarError("a token-level terminal (<|name|>, <[ids]>) stands where none is allowed")
    return tree


def _line(text: str, number: int) -> str:
    return text.split("\n")[number - 1].strip()[:100] if number <= text.count("\n") + 1 else "end of the grammar"


def _one_line(error: Exception) -> str:
    if isinstance(error, UnexpectedToken):
        what = "end of line" if error.token.type.startswith("_NL") else repr(str(error.token))
        expected = ", ".join(sorted(str(name) for name in error.expected))
        return f"unexpected {what} at line {error.line} column {error.column}; expected one of {expected}"
    return " ".join(str(error).split())
