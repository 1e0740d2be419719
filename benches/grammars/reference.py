"""The published construction beside the engine, and GLRMask: the sizes of their automata, building, and masks.

    python -m benches reference [--sizes 300 2000 10000 50000]

The first tokens of gpt2, which are the commonest behind the single bytes, and four grammars. The construction is built
for all lexer states, the engine ahead of time; masks are timed along one text of each grammar, behind every token.
GLRMask reads JSON schemas only, of these. It is in Rust, the engine in C++, the construction in Python: what is to be
compared are sizes, and how times grow.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import wfsa
from benches import machine
from benches.markdown import facts, number, table, write
from benches.recorded_data import Vocabulary, read_vocabulary
from wfsa.grammar.gbnf import read_gbnf
from wfsa.grammar.ir import Grammar
from wfsa.grammar.json_schema import SchemaOptions, read_json_schema

SIZES = (300, 2000, 10_000, 50_000)
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "tags": {"items": {"type": "string"}}},
    "required": ["name", "age"], "additionalProperties": False,
}  # fmt: skip
ARITHMETIC = 'root ::= sum\nsum ::= product (("+" | "-") product)*\nproduct ::= atom (("*" | "/") atom)*\n' + (
    'atom ::= [0-9]+ ("." [0-9]+)? | [a-z]+ | "(" sum ")"\n'
)
NESTED = 'root ::= "(" root ")" root | "[" root "]" root | ""\n'
FREE = SchemaOptions(max_whitespace=None)  # a bound on white space is no rule of a grammar

Case = tuple[Callable[[], Grammar], Any, bytes]  # the grammar, the schema if it is one, a text
CASES: dict[str, Case] = {
    "brackets": (lambda: read_gbnf(NESTED), None, b"([()][])" * 12),
    "arithmetic": (lambda: read_gbnf(ARITHMETIC), None, b"3.5+x*(y-21)/(a+(b-7))" * 1),
    "a person": (
        lambda: read_json_schema(PERSON, FREE).grammar, PERSON,
        json.dumps({"name": "Ada Lovelace", "age": 36, "tags": ["a b", "c"]}).encode(),
    ),
    "any JSON": (
        lambda: read_json_schema({}, FREE).grammar, {},
        json.dumps({"a": [1, {"b c": "d"}, None], "e": -1.5e-3, "f": [[True]]}).encode(),
    ),
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="tokens of the vocabularies")


def tokens_of(text: bytes, vocabulary: Vocabulary) -> list[int]:
    """The longest token each time."""
    numbers = {token: number for number, token in enumerate(vocabulary.tokens[:-1])}
    out = []
    while text:
        n = next(n for n in range(min(len(text), 32), 0, -1) if text[:n] in numbers)
        out.append(numbers[text[:n]])
        text = text[n:]
    return out


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """And seconds."""
    began = time.perf_counter()
    out = call()
    return out, time.perf_counter() - began


def masks(fill: Callable[[], Any], commit: Callable[[int], Any], tokens: list[int]) -> float:
    """µs of a mask, the median along the tokens."""
    times = []
    for token in tokens:
        times.append(min(timed(fill)[1] for _ in range(3)))
        commit(token)
    return 1e6 * float(np.median(times))


def literal(grammar: Grammar, vocab: wfsa.Vocab, tokens: list[int]) -> dict[str, Any]:
    import wfsa.reference

    made = wfsa.reference.compile(grammar, vocab)
    automata, seconds = timed(made.build)
    state = [made.start()]
    lexed = [made.terminal_automata.of(one) for one in made.lexer.states()]
    used = {weight for dwa in (*automata, *lexed) for row in dwa.arcs for _, weight in row.values()}
    used |= {weight for dwa in (*automata, *lexed) for weight in dwa.final}
    mask = masks(lambda: state[0].get_mask(), lambda token: state.__setitem__(0, state[0].commit(token)), tokens)
    return {
        "lexer states": len(automata), "LR states": made.tables.n_states,
        "terminal states": sum(one.n_states for one in lexed), "terminal arcs": sum(one.n_arcs for one in lexed),
        "states": sum(one.n_states for one in automata), "arcs": sum(one.n_arcs for one in automata),
        "weights": len(used), "bytes": sum(len(made.sets[weight].serialize()) for weight in used),
        "depth": max(one.depth() for one in automata),
        "build, ms": 1e3 * seconds, "mask, µs": mask,
    }  # fmt: skip


def engine(grammar: Grammar, vocab: wfsa.Vocab, tokens: list[int]) -> dict[str, Any]:
    fresh = wfsa.Vocab(vocab.tokens, special_ids=vocab.special_ids, eos_ids=vocab.eos_ids)  # walks of its own
    made, seconds = timed(lambda: wfsa.compile(grammar, fresh))
    state, buffer = made.start(), np.zeros((vocab.n_tokens + 31) // 32, np.int32)
    mask = masks(lambda: state.fill_bitmask(buffer), state.commit, tokens)
    stats = made.stats
    sizes = {"states": stats["dwa_states"], "arcs": stats["dwa_transitions"], "lexer states": stats["lexer_states"]}
    return {**sizes, "bytes": len(made.to_bytes()), "build, ms": 1e3 * seconds, "mask, µs": mask}


def rival(schema: Any, vocabulary: Vocabulary, tokens: list[int]) -> dict[str, Any]:
    from benches.engines.glrmask_engine import GLRMask

    other = GLRMask(vocabulary)
    made, seconds = timed(lambda: other.compile("json_schema", other.prepare("json_schema", schema)))
    state, buffer = other.starter(made)(), np.zeros((len(vocabulary.tokens) + 31) // 32, np.int32)
    mask = masks(other.filler(state, buffer), other.committer(state), tokens)
    return {"bytes": len(made.save()), "build, ms": 1e3 * seconds, "mask, µs": mask}


def main(args: argparse.Namespace) -> Path:
    where = machine.describe()
    whole = read_vocabulary("gpt2")
    lines, sections = [], []
    for name, (read, schema, text) in CASES.items():
        rows = []
        for size in args.sizes[:2] if args.quick else args.sizes:
            tokens = [*whole.tokens[:size], b"</s>"]
            vocabulary = replace(whole, tokens=tokens, special_ids=[size], eos_ids=[size])
            vocab = wfsa.Vocab(tokens, special_ids=[size], eos_ids=[size])
            walk, grammar = tokens_of(text, vocabulary), read()
            found = {"construction": literal(grammar, vocab, walk), "engine": engine(grammar, vocab, walk)}
            if schema is not None:
                found["glrmask"] = rival(schema, vocabulary, walk)
            lines.append({"grammar": name, "tokens": size, **found})
            one = found["construction"]
            rows.append([
                number(size), f"{one['terminal states']:,} / {one['terminal arcs']:,}",
                f"{one['states']:,} / {one['arcs']:,}", f"{found['engine']['states']:,} / {found['engine']['arcs']:,}",
                number(one["weights"]), str(one["depth"]),
                *(" / ".join(number(of[what]) for of in found.values()) for what in ("bytes", "build, ms", "mask, µs")),
            ])  # fmt: skip
        one = lines[-1]["construction"]
        rivals = " / ".join(["construction", "engine", *(["GLRMask"] if schema is not None else [])])
        sections += [
            f"## {name}: {one['LR states']} LR states, {one['lexer states']} lexer states",
            table(
                ["tokens", "terminal automata: states / arcs", "parser automata", "the engine's", "weights", "depth",
                 f"bytes: {rivals}", "build, ms", "mask, µs (median)"],
                rows,
            ),
        ]  # fmt: skip
    head = [
        "# The published construction beside the engine", facts(where),
        "Bytes: of the construction its weights as Roaring writes them, of the others a saved constraint. "
        "The first is Python, the others are compiled.",
    ]  # fmt: skip
    return write(args.out, "reference", [*head, *sections], lines)
