"""The layers: grammar knows no automata, automata know no grammar, kernels know only arrays and each other.

Read from the sources, not by importing them: imports inside functions and under TYPE_CHECKING count, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GRAMMAR = sorted((ROOT / "grammar").rglob("*.py"))
HEADERS = sorted((ROOT / "ext").rglob("*.hpp"))
# What the Cython module may take from the package: error types, and the regular trees that it compiles.
BOUNDARY = {"wfsa.errors", "wfsa.grammar.regular"}
STANDARD_HEADER = re.compile(r"<[a-z_]+>")


def imported(path: Path, package: str) -> Iterator[str]:
    """Absolute names of the modules that a file of `package` imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if not node.level:
                base = node.module or ""
            else:
                above = package.split(".")
                base = ".".join([*above[: len(above) - node.level + 1], *([node.module] if node.module else [])])
            # `from wfsa import compile` names a module of the package as much as `import wfsa.compile`.
            if base == "wfsa":
                yield from (f"wfsa.{alias.name}" for alias in node.names)
            else:
                yield base


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("path", GRAMMAR, ids=lambda path: str(path.relative_to(ROOT)))
def test_grammar_imports_only_grammar_and_errors(path: Path) -> None:
    package = ".".join(["wfsa", *path.relative_to(ROOT).parent.parts])
    for module in imported(path, package):
        if within(module, "wfsa"):
            assert within(module, "wfsa.grammar") or module == "wfsa.errors", f"{path.name} imports {module}"
        assert module != "grammar" and not module.startswith("grammar."), f"{path.name}: import it as wfsa.{module}"


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_headers_include_only_each_other_and_the_standard_library(path: Path) -> None:
    if path.parent.name == "bindings":
        pytest.skip("the bindings know Python")
    known = {header.relative_to(ROOT / "ext").as_posix() for header in HEADERS}
    for included in re.findall(r"^\s*#\s*include\s+(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        if included.startswith('"'):
            assert included.strip('"') in known, f"{path.name} includes {included}"
        else:
            assert STANDARD_HEADER.fullmatch(included), f"{path.name} includes {included}"


def test_headers_do_not_include_in_circles() -> None:
    includes = {
        path.relative_to(ROOT / "ext").as_posix(): re.findall(
            r'^\s*#\s*include\s+"(\S+)"', path.read_text(encoding="utf-8"), re.MULTILINE
        )
        for path in HEADERS
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"circle of includes: {' -> '.join([*above, name])}"
        if name not in done:
            for other in includes[name]:
                visit(other, (*above, name))
            done.add(name)

    for name in includes:
        visit(name, ())


def test_the_boundary_takes_errors_and_regular_trees_only() -> None:
    text = "\n".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "ext" / "bindings").glob("*.pyx")))
    modules = set(re.findall(r"^\s*(?:from|import|cimport)\s+(wfsa[\w.]*)", text, re.MULTILINE))
    assert {module for module in modules if not within(module, "wfsa._ext")} <= BOUNDARY


def test_algorithms_do_not_call_drivers() -> None:
    """Only the package's outer modules may import the compiler's driver."""
    outer = {"__init__.py", "explain.py"}  # the last one compiles keywords by themselves
    for path in sorted((ROOT / "wfsa").glob("*.py")):
        if path.name not in outer and path.name != "compiler.py":
            assert "wfsa.compiler" not in set(imported(path, "wfsa")), f"{path.name} imports the driver"


# Arrows between modules of wfsa that close a circle and are there on purpose, each with the reason.
CLOSING_ARROWS = {
    ("wfsa.grammar_constraint", "wfsa.explain"): "an explanation compiles keywords by themselves",
    ("wfsa.items.index", "wfsa.storage.item_index_file"): "an index saves and loads itself",
}


def test_modules_do_not_import_in_circles() -> None:
    """Imports inside functions count, those for type checkers do not."""
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((ROOT / "wfsa").rglob("*.py"))
        if "grammar" not in path.relative_to(ROOT / "wfsa").parts[:1]
    }
    imports = {name: set(run_imports(path, name, set(modules))) - {name} for name, path in modules.items()}
    for source, target in CLOSING_ARROWS:
        imports.get(source, set()).discard(target)
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"circle of imports: {' -> '.join([*above, name])}"
        if name not in done:
            for other in sorted(imports[name]):
                visit(other, (*above, name))
            done.add(name)

    for name in sorted(modules):
        visit(name, ())


def run_imports(path: Path, name: str, modules: set[str]) -> Iterator[str]:
    """The modules among `modules` whose code runs before, or inside of, that of module `name`."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:  # of a package: a module of it, or a name of its own
                inner = f"{base}.{alias.name}"
                yield from (found for found in (inner if inner in modules else base,) if found in modules)
