"""SGLang: constraints of wfsa as a grammar backend.

Installed beside SGLang, the package is found by its entry point (``sglang.srt.plugins``), and then

    python -m sglang.launch_server --model-path MODEL --grammar-backend wfsa

takes it.  The environment variable ``WFSA_SETTINGS`` holds settings as JSON: fields of
:class:`wfsa.integrations.serving.Settings`.

Requests with a reasoning parser are wrapped in SGLang's own object, which waits for the end of the reasoning.  Draft
trees are walked in one call where the grammar is one of ours (`traverse_tree`).
Texts are kept within the request's ``max_new_tokens`` (`limit_tokens`).
Written for SGLang 0.5.23.  Tried with its grammar modules on a CPU; the scheduler around them needs a GPU.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wfsa._ext.state import State, fill_bitmasks, fill_tree
from wfsa.bitmask import apply_bitmask_
from wfsa.errors import WfsaError
from wfsa.integrations.serving import Constraints, Settings, vocabulary_of
from wfsa.integrations.token_limit import TokenLimit, fill_within

_LOG = logging.getLogger("wfsa.sglang")
_NAME = "wfsa"
_ANY_JSON = "$$ANY$$"
_PREPARED = "sglang.srt.constrained.grammar_manager.GrammarManager._apply_request_reasoning_config"


def register() -> None:
    """Make SGLang know the backend; what the entry point runs.

    Raises ImportError where this SGLang is not one that is known here, with its version and the remedy.
    """
    try:
        from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
        from sglang.srt.constrained.base_grammar_backend import register_grammar_backend
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    except ImportError as error:
        from importlib.metadata import version

        raise ImportError(
            f"wfsa does not know this SGLang ({version('sglang')}): {error}; it is written for 0.5.23: install "
            "that, or leave wfsa out of SGLANG_PLUGINS"
        ) from error
    if _NAME in GRAMMAR_BACKEND_CHOICES:
        return
    add_grammar_backend_choices([_NAME])
    register_grammar_backend(_NAME, make_backend)
    HookRegistry.register("sglang.srt.speculative.spec_utils.traverse_tree", traverse_tree, HookType.AROUND)
    HookRegistry.register(_PREPARED, limit_tokens, HookType.AFTER)


def make_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None = None) -> Any:
    """The backend of one engine; behind SGLang's own wrapper where a reasoning parser is set."""
    from sglang.srt.runtime_context import get_serving

    given = json.loads(os.environ.get("WFSA_SETTINGS", "{}"))
    backend = backend_class()(tokenizer, vocab_size, eos_token_ids, Settings.of(given, "WFSA_SETTINGS"))
    serving = get_serving()
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    return ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
    )


def limit_tokens(result: Any, manager: Any, request: Any) -> Any:
    """Let the grammar of a request know the request; SGLang has just prepared it."""
    grammar = getattr(request.grammar, "grammar", request.grammar)  # that of a text behind reasoning is in another
    if isinstance(grammar, grammar_class()):
        grammar.request = request
    return result


def traverse_tree(
    original: Any, retrieve_next_token: Any, retrieve_next_sibling: Any, draft_tokens: Any, grammar: Any,
    allocate_token_bitmask: Any, vocab_size: int | None = None,
) -> None:  # fmt: skip
    """The masks of a draft tree: tensors of n nodes, and of n rows of int32; in place of SGLang's walk in Python."""
    if not isinstance(grammar, grammar_class()):
        original(
            retrieve_next_token, retrieve_next_sibling, draft_tokens, grammar, allocate_token_bitmask, vocab_size
        )
        return
    following, siblings = np.asarray(retrieve_next_token, np.int64), np.asarray(retrieve_next_sibling, np.int64)
    drafts, state = np.asarray(draft_tokens, np.int64), grammar.state
    wrap_up = grammar.settings.wrap_up

    def fill(budgets: list[int | None]) -> None:
        fill_tree(state, following, siblings, drafts, allocate_token_bitmask, budgets=budgets[0], wrap_up=wrap_up)

    fill_within([state], [grammar.budget()], fill)


@functools.cache
def grammar_class() -> type[Any]:
    """The grammar of one request, a subclass of SGLang's; made when SGLang is there."""
    import torch
    from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject

    class WfsaGrammar(BaseGrammarObject):  # type: ignore[misc]
        def __init__(self, state: State, n_words: int, constraints: Constraints) -> None:
            super().__init__()
            self.state, self.n_words, self.constraints = state, n_words, constraints
            self.settings = constraints.settings
            constraints.count(self)
            self.request: Any = None
            self.limit = TokenLimit()

        def budget(self) -> int | None:
            """What its request leaves it; what came before the text, as reasoning, is counted until it begins."""
            if self.request is not None and self.settings.within_max_tokens and not self.state.n_commits:
                most = self.request.sampling_params.max_new_tokens
                if most is not None:
                    self.limit.set(most - len(self.request.output_ids), self.state)
            return self.limit.budget(self.state)

        def accept_token(self, token: int) -> None:
            if self.finished or self.state.is_finished():
                return  # what follows the end is not looked at
            vocab = self.state.constraint.vocab
            if not 0 <= token < vocab.n_tokens:
                raise ValueError(f"token {token} is refused: the vocabulary has {vocab.n_tokens} tokens")
            if not self.state.commit(token):
                raise ValueError(f"token {token} is refused: {self.state.explain(token)}")

        def rollback(self, k: int) -> None:
            self.finished = False
            self.state.rollback(min(k, self.state.n_commits))

        def is_terminated(self) -> bool:
            return self.state.is_finished()

        def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
            return torch.full((batch_size, self.n_words), -1, dtype=torch.int32)

        def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
            self.fill_rows([self], vocab_mask, [idx])

        @staticmethod
        def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
            """All rows in one call; those of other objects, as one that waits for reasoning to end, by themselves."""
            own = [entry for entry in entries if isinstance(entry.grammar, WfsaGrammar)]
            for entry in entries:
                if not isinstance(entry.grammar, WfsaGrammar):
                    entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
            if own:
                WfsaGrammar.fill_rows([entry.grammar for entry in own], vocab_mask, [entry.row for entry in own])

        @staticmethod
        def fill_rows(grammars: Sequence[Any], vocab_mask: torch.Tensor, rows: Sequence[int]) -> None:
            states, settings = [one.state for one in grammars], grammars[0].settings
            options: dict[str, Any] = {"rows": rows, "threads": settings.threads, "wrap_up": settings.wrap_up}
            with grammars[0].constraints.timed_masks():
                fill_within(
                    states, [one.budget() for one in grammars],
                    lambda budgets: fill_bitmasks(states, vocab_mask, budgets=budgets, **options),
                )

        @staticmethod
        def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
            vocab_mask.fill_(-1)

        @staticmethod
        def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
            return vocab_mask.to(device, non_blocking=True)

        @staticmethod
        def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
            apply_bitmask_(logits, vocab_mask)

        def copy(self) -> WfsaGrammar:
            return WfsaGrammar(self.state.fork(), self.n_words, self.constraints)

    return WfsaGrammar


@functools.cache
def backend_class() -> type[Any]:
    """The backend, a subclass of SGLang's; made when SGLang is there."""
    from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend, GrammarStats, InvalidGrammarObject

    class WfsaBackend(BaseGrammarBackend):  # type: ignore[misc]
        """Compiles requests, for one engine; `vocab_size` is the width of the model's logits."""

        def __init__(
            self, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None, settings: Settings
        ) -> None:
            super().__init__()
            vocab = vocabulary_of(tokenizer, vocab_size)
            self.stops = sorted(i for i in eos_token_ids or () if 0 <= i < vocab.n_tokens)
            self.constraints = Constraints(vocab, settings)
            self.n_words = (vocab_size + 31) // 32

        def grammar_of(self, kind: str, text: str) -> Any:
            try:
                constraint = self.constraints.of(kind, text)
            except WfsaError as error:
                _LOG.error("a %s is refused: %s", kind, error)
                return InvalidGrammarObject(f"wfsa: {error}")
            state = constraint.start(stop_ids=self.stops) if self.stops else constraint.start()
            grammar = grammar_class()(state, self.n_words, self.constraints)
            grammar.grammar_stats = GrammarStats(dispatch_type=kind)
            return grammar

        def dispatch_json(self, key_string: str) -> Any:
            return self.grammar_of("json_object" if key_string == _ANY_JSON else "json", key_string)

        def dispatch_regex(self, key_string: str) -> Any:
            return self.grammar_of("regex", key_string)

        def dispatch_ebnf(self, key_string: str) -> Any:
            return self.grammar_of("grammar", key_string)

        def dispatch_structural_tag(self, key_string: str) -> Any:
            return self.grammar_of("structural_tag", key_string)

    return WfsaBackend
