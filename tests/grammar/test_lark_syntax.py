"""The recursive-descent reader against Lark's own parser: same texts taken, equal trees, on grammars and mutations."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from lark import Token, Tree, load_grammar
from lark.exceptions import LarkError

from tests.grammar.conformance import cases
from wfsa.grammar.lark.syntax import lexemes, parse_statements, without_special

GRAMMARS = Path(__file__).resolve().parents[3] / "shared" / "data" / "grammars"
LIBRARY = Path(load_grammar.__file__).parent / "grammars"
loader: Any = load_grammar

TEXTS = [
    """start: a{x, "q"}? [c "d".."e"]~2..3 -> al | /x/i
         | (b | [c])* "\\""i+\n!?b: \n_c.3: B\nB.-2: "x"~3\n""",
    "%import common.A -> B\n%import .x.y (a, B)\n%import x.y\n%ignore /[ \\t]/ | A\n%declare X y\n",
    '%override A.3: "x"\n%extend a: "x"\n',
    "a: b // comment\n // another\n  | c \\\n  d\n# one more\n\n\nA: /a\n b/x\n",
    'a{b, c}: b c | a{b, a{c, "x"}}\n',
    "",
]
INSERTED = ["\n", "\n|", "%import", "->", "..", "?a", "\\\n", "// x\n", "#", *"|.~3?!(){}[]"]


def shape(node: Any) -> Any:
    if isinstance(node, Tree):
        return (str(node.data), [shape(c) for c in node.children])
    if isinstance(node, Token):
        return (node.type, node.value)
    return (type(node).__name__, node.name, getattr(node, "filter_out", None))


def lark_tree(text: str) -> Any:
    try:
        return loader.PrepareGrammar().transform(loader._get_parser().parse(text + "\n", "start"))
    except LarkError:
        return None


def same(text: str) -> bool:
    """Compare on one text; whether Lark takes it."""
    theirs, ours = lark_tree(text), parse_statements(text)
    assert (theirs is None) == (ours is None), text
    if theirs is not None:
        assert shape(ours) == shape(theirs), text
    return theirs is not None


def corpus() -> list[str]:
    files = [*GRAMMARS.glob("*/*.lark"), *LIBRARY.glob("*.lark")]
    texts = TEXTS + [f.read_text(encoding="utf8") for f in sorted(files)] + [case.grammar for case in cases("lark")]
    return [t for t in texts if not any(kind == "SPECIAL" for kind in lexemes(t)[0])]


def mutated(rng: random.Random, text: str) -> str:
    _, texts, offsets = lexemes(text)
    i, j = rng.randrange(len(texts)), rng.randrange(len(texts))
    at, end = offsets[i], offsets[i] + len(texts[i])
    choice = rng.randrange(4)
    if choice == 0:
        return text[:at] + text[end:]
    if choice < 3:
        return text[:at] + (texts[j] if choice == 1 else rng.choice(INSERTED)) + text[at:]
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice('\n |"/\\x?!~.') + text[at:]


def test_corpus() -> None:
    assert sum(map(same, corpus())) > 10


def test_mutations() -> None:
    rng = random.Random(2026)
    texts = [t for t in corpus() if len(t) < 2000]
    taken = 0
    for _ in range(600):
        text = mutated(rng, rng.choice(texts))
        if "<" not in text:
            taken += same(text)
    assert taken > 50  # some mutations have to survive, or the test says nothing


def test_lines() -> None:
    tree = parse_statements("a: b\n\n  // c\nb: \"x\"\n  | \"y\"\n\nC.2: \"z\"\n")
    assert tree is not None
    names = [next(c for c in stmt.children if isinstance(c, Token)) for stmt in tree.children]
    assert [(str(t), t.line) for t in names] == [("a", 1), ("b", 4), ("C", 7)]


@pytest.mark.parametrize("special", ["<|tool|>", "<[12]>", "<[1,3-5]>", "<think>"])
def test_token_level_terminals(special: str) -> None:
    tree = parse_statements(f'start: "<" {special}? "x<[1]>"')
    assert tree is not None
    assert [n.children[0] for n in tree.find_data("token")] == [special]
    plain = without_special(f'start: "<" {special}? "x<[1]>" /<a>/')
    assert special not in plain and "x<[1]>" in plain and "/<a>/" in plain  # literals keep theirs
    assert lark_tree(plain) is not None
