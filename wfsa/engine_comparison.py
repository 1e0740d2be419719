"""Engines side by side on one JSON Schema, vocabulary and some documents.

For one's own schema, quickly; the recorded comparisons of the project (benches/) time in processes of their own, with
clocks that are checked.  Each engine compiles a few times, its cache switched off or emptied before each; along each
document the mask behind every token is timed once, in the document's tokens as the vocabulary cuts them
(wfsa/vocab/cut.py).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from wfsa.caches import empty_caches
from wfsa.compiler import compile_json_schema
from wfsa.errors import StateError
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.vocab import Vocab
from wfsa.vocab.cut import cut


class Row(NamedTuple):
    """Of one engine; `error`: why it could not compile, or "" """

    engine: str
    compile_ms: float | None
    masks: int
    mask_us_p50: float
    mask_us_p99: float
    mask_us_max: float
    accepted: int  # texts
    error: str


class Cut(NamedTuple):
    """A text in tokens; `whole`: up to its end, for there may be no token for the rest."""

    ids: list[int]
    whole: bool


class Matcher(Protocol):
    """A text under an engine."""

    def mask(self) -> Any: ...
    def commit(self, token: int) -> bool: ...
    def may_end(self) -> bool: ...


Engine = Callable[[str], Callable[[], Matcher]]  # schema -> what starts a text


def compare(schema: str, vocab: Vocab, texts: list[bytes], repeats: int) -> list[Row]:
    """A row for each engine that is installed."""
    cuts = [Cut(ids, sum(len(vocab.tokens[i]) for i in ids) == len(text))
            for text in texts for ids in [cut(vocab, text)]]  # fmt: skip
    rows = []
    for name, make in (
        ("wfsa", _wfsa("ahead")), ("wfsa, background", _wfsa("background")), ("llguidance", _llguidance),
        ("xgrammar", _xgrammar),
    ):  # fmt: skip
        try:
            engine = make(vocab)
        except ImportError:
            continue
        rows.append(_row(name, engine, schema, cuts, repeats))
    return rows


def _row(name: str, engine: Engine, schema: str, cuts: list[Cut], repeats: int) -> Row:
    seconds = []
    try:
        for _ in range(repeats):
            empty_caches()
            begin = time.perf_counter()
            start = engine(schema)
            seconds.append(time.perf_counter() - begin)
    except Exception as error:  # each engine has errors of its own
        return Row(name, None, 0, 0.0, 0.0, 0.0, 0, " ".join(f"{type(error).__name__}: {error}".split())[:200])
    masks, accepted = [], 0
    for ids, whole in cuts:
        matcher = start()
        for token in (*ids, None):
            begin = time.perf_counter()
            matcher.mask()
            masks.append(1e6 * (time.perf_counter() - begin))
            if token is not None and not matcher.commit(token):
                break
        else:
            accepted += whole and matcher.may_end()
    p50, p99, most = (float(np.quantile(masks, q)) for q in (0.5, 0.99, 1.0)) if masks else (0.0, 0.0, 0.0)
    return Row(name, 1e3 * min(seconds), len(masks), p50, p99, most, accepted, "")


def drawn_texts(schema: str, vocab: Vocab, n: int, longest: int = 200) -> list[bytes]:
    """Documents by random tokens under the schema, complete within so many tokens where it is known how many they need.

    Without white space between lexemes, since engines differ in how much of it they take, and where.
    """
    constraint = compile_json_schema(schema, vocab, schema_options=SchemaOptions(whitespace="compact"))
    found = []
    for seed in range(n):
        chance, state, left = random.Random(seed), constraint.start(), longest
        while not state.is_finished():
            try:
                left = max(left, state.min_tokens())
                ids = state.get_mask(budget=left).ids()
            except StateError:  # a grammar whose shortest texts are not known: as it comes, and then as short as can be
                closing = state.closing() if left < longest // 2 else None
                if closing is not None:
                    state.commit_bytes(closing)
                    break
                ids = state.get_mask().ids()
            state.commit(int(chance.choice(ids)))
            left -= 1
        found.append(state.text())
    return found


# --- the engines -------------------------------------------------------------------------------------------------


def _wfsa(mode: Any) -> Callable[[Vocab], Engine]:
    class Wfsa:
        def __init__(self, state: Any, row: Any) -> None:
            self.state, self.row = state, row

        def mask(self) -> None:
            self.state.fill_bitmask(self.row)

        def commit(self, token: int) -> bool:
            return bool(self.state.commit(token))

        def may_end(self) -> bool:
            return bool(self.state.is_accepting())

    def make(vocab: Vocab) -> Engine:
        row = np.zeros((vocab.size + 31) // 32, np.int32)

        def compiled(schema: str) -> Callable[[], Matcher]:
            constraint = compile_json_schema(schema, vocab, mode=mode)
            return lambda: Wfsa(constraint.start(), row)

        return compiled

    return make


def _llguidance(vocab: Vocab) -> Engine:
    import llguidance

    special = set(vocab.special_ids.tolist())
    named = [(b"\xff" if number in special else b"") + token for number, token in enumerate(vocab.tokens)]

    class Tokenizer:
        """What ``llguidance.TokenizerWrapper`` reads; 0xFF marks a special token's name."""

        special_token_ids = sorted(special)
        eos_token_id = int(vocab.eos_ids[0])
        bos_token_id = None
        tokens = named

        def __call__(self, text: str | bytes) -> list[int]:
            return cut(vocab, text.encode() if isinstance(text, str) else text)

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()), n_vocab=vocab.n_tokens)
    row = np.zeros((vocab.n_tokens + 31) // 32, np.int32)
    end = int(vocab.eos_ids[0])

    class Guidance:
        def __init__(self, matcher: Any) -> None:
            self.matcher = matcher

        def mask(self) -> None:
            self.matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)

        def commit(self, token: int) -> bool:
            return bool(self.matcher.consume_token(token))

        def may_end(self) -> bool:
            self.mask()
            return bool(row[end // 32] >> (end % 32) & 1)

    def compiled(schema: str) -> Callable[[], Matcher]:
        made = llguidance.LLMatcher(
            tokenizer, llguidance.LLMatcher.grammar_from_json_schema(json.dumps(json.loads(schema))), log_level=0
        )
        if made.is_error():
            raise ValueError(made.get_error())
        return lambda: Guidance(made.deep_copy())

    return compiled


def _xgrammar(vocab: Vocab) -> Engine:
    import xgrammar

    info = xgrammar.TokenizerInfo(
        list(vocab.tokens), vocab_type=xgrammar.VocabType.RAW, vocab_size=vocab.n_tokens,
        stop_token_ids=[int(vocab.eos_ids[0])],
    )  # fmt: skip
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    row = np.zeros((1, (vocab.n_tokens + 31) // 32), np.int32)
    end = int(vocab.eos_ids[0])

    class Grammar:
        def __init__(self, matcher: Any) -> None:
            self.matcher = matcher

        def mask(self) -> None:
            self.matcher.fill_next_token_bitmask(row)

        def commit(self, token: int) -> bool:
            return bool(self.matcher.accept_token(token))

        def may_end(self) -> bool:
            self.mask()
            return bool(row[0, end // 32] >> (end % 32) & 1)

    def compiled(schema: str) -> Callable[[], Matcher]:
        made = compiler.compile_json_schema(json.dumps(json.loads(schema)), any_whitespace=True, strict_mode=False)
        return lambda: Grammar(xgrammar.GrammarMatcher(made))

    return compiled
