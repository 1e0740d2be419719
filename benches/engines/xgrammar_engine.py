"""Adapter for XGrammar: a byte-level pushdown automaton with precomputed, context-independent masks per position.

It uses one thread and no cache between schemas, since a cache would hide the cost of compiling. White space and
additional properties are allowed as in JSON Schema (`strict_mode=False`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import xgrammar

from benches.engines import Buffer, has_bit
from benches.jobs import Kind
from benches.recorded_data import Vocabulary


class XGrammar:
    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        info = xgrammar.TokenizerInfo(
            vocabulary.tokens,
            vocab_type=xgrammar.VocabType.RAW,
            vocab_size=len(vocabulary.tokens),
            stop_token_ids=[vocabulary.eos_token_ids[0]],
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.eos = vocabulary.eos_token_ids[0]

    def prepare(self, kind: Kind, source: Any) -> Any:
        return json.dumps(source) if kind == "json_schema" else source

    def compile(self, kind: Kind, prepared: Any) -> Any:
        if kind == "json_schema":
            return self.compiler.compile_json_schema(prepared, any_whitespace=True, strict_mode=False)
        return self.compiler.compile_lark(prepared) if kind == "lark" else self.compiler.compile_grammar(prepared)

    def starter(self, compiled: Any) -> Callable[[], Any]:
        return partial(xgrammar.GrammarMatcher, compiled)

    def forker(self, state: Any) -> Callable[[], Any]:
        return state.fork  # type: ignore[no-any-return]

    def filler(self, state: Any, buffer: Buffer) -> Callable[[], Any]:
        return partial(state.fill_next_token_bitmask, buffer.reshape(1, -1))

    def committer(self, state: Any) -> Callable[[int], Any]:
        return state.accept_token  # type: ignore[no-any-return]

    def may_end(self, state: Any, buffer: Buffer) -> bool:
        self.filler(state, buffer)()
        return has_bit(buffer, self.eos)
