"""``generate`` of the transformers library under constraints.

    processor = wfsa.integrations.transformers.logits_processor(schema, tokenizer)
    model.generate(**inputs, logits_processor=[processor])

**Problem.** ``generate`` calls a processor with rows of tokens, prompt and all, and with scores. It does not say where
the prompt ends; it reorders and repeats rows (beams, ``num_return_sequences``), fills up rows that have ended with
padding, and takes tokens back (assisted generation asks for every prefix of a draft, then again from a shorter one).

**Method.** A row's state is found by its tokens behind the prompt (:mod:`.prefix_states`), never by its number. The
prompt is what stands in the first call. Later ones belong to the same generation as long as the rows begin with the
same prompts and are at most one token longer than any before; anything else begins a new one. ``reset()`` says so
where that cannot tell: a prompt that is the last one, with its answer or a part of it, and nothing else. Generations
that take turns with one processor are refused where that shows. One call fills the masks of all rows; scores are
copied, since hosts use theirs again.

**Rows that have ended** may only end again: their score stays finite, so that sampling has something to draw before
the host puts padding there. So may **rows with a token that is not allowed**: a beam search with more beams than there
are texts makes such rows, with a score of -inf. Others like these come from another processor or a forced token; the
first one is told by a :class:`wfsa.DecodingWarning`, and where nothing else is left it is a StateError.

**Not done.** Continuous batching, which shows its processors one token a row: :mod:`.continuous_batching` is for that.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from wfsa.installing import needs

with needs("wfsa.integrations.transformers", extra="transformers"):
    import torch
    import transformers

from wfsa._ext.state import State, fill_bitmasks
from wfsa.bitmask import allocate_bitmask, apply_bitmask_
from wfsa.compile_options import CompileOptions
from wfsa.constraint import Constraint
from wfsa.errors import DecodingError, DecodingWarning, StateError
from wfsa.grammar.json_schema import SchemaOptions
from wfsa.integrations.prefix_states import PrefixStates
from wfsa.integrations.schemas import constraint_of
from wfsa.integrations.token_limit import fill_within
from wfsa.vocab import Vocab
from wfsa.vocab.model_config import model_facts

HOST: Final = f"transformers {transformers.__version__}"

_KEPT_STEPS: Final = 8  # states of so many last steps are kept: drafts go back by a few tokens
_KEPT_AT_LEAST: Final = 256


class ConstraintLogitsProcessor(transformers.LogitsProcessor):  # type: ignore[misc]
    """-inf at every token after which a row is no beginning of a text that its constraint allows.

    constraints: one for all rows, or a list with one a prompt, None for a prompt that is free.
    stop_ids: the tokens that end a text, in place of the vocabulary's (``Constraint.start``).
    threads: how many compute the masks of a call.
    max_new_tokens: what ``generate`` gets, too: texts are completed within it (``State.get_mask(budget=...)``). Raises
        BudgetError where it is too small for any text. Without effect on constraints that do not know how many tokens
        they need (``State.min_tokens``).
    wrap_up: fewer than so many tokens before what is needed then, nothing begins that need not be there
        (``State.get_mask``).

    Greedy search, sampling, beams, ``num_return_sequences``, assisted generation and prompt lookup, streaming, and
    encoder-decoder models. May be used for any number of generations, one after the other.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        constraints: Constraint | Sequence[Constraint | None],
        *,
        stop_ids: Iterable[int] | None = None,
        threads: int = 1,
        max_new_tokens: int | None = None,
        wrap_up: int = 0,
    ) -> None:
        self.constraints = [constraints] if isinstance(constraints, Constraint) else list(constraints)
        if not self.constraints:
            raise DecodingError(f"{HOST}: no constraints; give one for all rows, or one (or None) a prompt")
        stops = None if stop_ids is None else list(stop_ids)
        starts = [None if one is None else one.start(stop_ids=stops) for one in self.constraints]
        self.size = max((one.vocab.size for one in self.constraints if one is not None), default=1)
        self.threads = threads
        self.wrap_up = wrap_up
        self._budgets = [None if one is None else _budget(one, max_new_tokens) for one in starts]
        self.prompt_length = 0
        self._one_for_all = isinstance(constraints, Constraint)
        self._states = PrefixStates(starts, _KEPT_AT_LEAST)
        self._prompts: Any = None  # int64[rows, prompt_length]
        self._longest = 0  # columns of the longest call of this generation
        self._before: tuple[Any, int] = None, 0  # both, of the generation before
        self._masks = allocate_bitmask(0, self.size)
        self._told = False

    @property
    def end_ids(self) -> tuple[int, ...]:
        """The tokens that end a text, of any of the constraints; ascending."""
        return tuple(sorted({token for start in self._states.starts for token in ends_of(start)}))

    def start(self, prompt: int) -> State:
        """The state before the first token of a prompt's text, not to be changed. StateError where it is free."""
        found = self._states.starts[0 if self._one_for_all else prompt]
        if found is None:
            raise StateError(f"prompt {prompt} has no constraint")
        return found

    def reset(self) -> None:
        """The next call begins a new generation, whatever its rows are."""
        self._prompts, self._before = None, (None, 0)
        self._told = False
        self._states.clear()

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores float[rows, V], masked, in a copy; ``input_ids`` int64[rows, prompt and what was written].

        Raises StateError where the model is narrower than the vocabulary, or no row is left that may go on;
        DecodingError where the rows are no multiple of the constraints.
        """
        if scores.shape[-1] < self.size:
            raise StateError(too_narrow(scores.shape[-1], self.size))
        self._begin_if_new(input_ids)
        n_rows = len(input_ids)
        which = self._constraint_of_rows(n_rows)
        written = input_ids[:, self.prompt_length :].to(device="cpu", dtype=torch.int32).numpy()
        rows = [row for row in range(n_rows) if self.constraints[which[row]] is not None]
        states = {row: self._states.after(which[row], written[row]) for row in rows}
        refused = [row for row in rows if states[row] is None]
        if refused:
            self._tell(refused, n_rows, written)
        masked = scores.clone(memory_format=torch.contiguous_format)
        if rows:
            mask_rows(masked, self._fill(n_rows, which, states, written.shape[1]), rows)
        return masked

    def _fill(self, n_rows: int, which: list[int], states: dict[int, State | None], n_written: int) -> Any:
        """int32[rows, ceil(V/32)] with the masks of these rows, behind so many tokens of each."""
        if len(self._masks) < n_rows:
            self._masks = allocate_bitmask(n_rows, self.size)
        masks = self._masks[:n_rows]
        going = {row: state for row, state in states.items() if state is not None and not state.is_finished()}
        budgets = [self._budgets[which[row]] for row in going]
        options: dict[str, Any] = {"threads": self.threads, "rows": list(going), "wrap_up": self.wrap_up}
        fill_within(
            list(going.values()), [None if most is None else most - n_written for most in budgets],
            lambda left: fill_bitmasks(list(going.values()), masks, budgets=left, **options),
        )  # fmt: skip
        for row in states.keys() - going.keys():
            only(masks[row], ends_of(self._states.starts[which[row]]))
        return masks

    def _begin_if_new(self, input_ids: Any) -> None:
        length = input_ids.shape[1]
        if not _goes_on(self._prompts, self._longest, input_ids):
            before, longest = self._before
            if _goes_on(before, longest, input_ids) and length > before.shape[1]:
                raise DecodingError(
                    f"{HOST}: two generations take turns with one processor, which cannot tell where their prompts "
                    "end: an assistant with another tokenizer, or two threads. Give each thread its own processor, and "
                    "take an assistant with the model's tokenizer; if one goes on from another's text, call reset()"
                )
            this = self._prompts, self._longest
            self.reset()
            self._before = this
            self.prompt_length, self._longest = length, length
            self._prompts = input_ids.clone()
            self._states.capacity = max(_KEPT_AT_LEAST, _KEPT_STEPS * len(input_ids))
        self._longest = max(self._longest, length)

    def _constraint_of_rows(self, n_rows: int) -> list[int]:
        """The constraint's number for each row: beams and returned sequences of a prompt stand side by side."""
        if self._one_for_all:
            return [0] * n_rows
        each, rest = divmod(n_rows, len(self.constraints))
        if rest:
            raise DecodingError(
                f"{HOST}: {len(self.constraints)} constraints for {n_rows} rows; give one (or None) for each prompt"
            )
        return [row // each for row in range(n_rows)]

    def _tell(self, refused: list[int], n_rows: int, written: Any) -> None:
        what = (
            f"{HOST}: row {refused[0]} of {n_rows} has a token that its constraint does not allow (the last tokens are "
            f"{written[refused[0]][-8:].tolist()}). Another processor or a forced token chose it (min_new_tokens, "
            "forced_bos_token_id, suppress_tokens, ...)"
        )
        if len(refused) == n_rows:
            raise StateError(f"{what}; leave that out, or put it behind this processor")
        if not self._told:
            self._told = True
            warnings.warn(
                f"{what}, or there are more beams than texts: then its score is -inf", DecodingWarning, stacklevel=3
            )


def _budget(start: State, max_new_tokens: int | None) -> int | None:
    """The tokens that a text may have; None: no matter, or nothing says how many it needs."""
    if max_new_tokens is None:
        return None
    try:
        start.min_tokens()
    except StateError:
        return None
    start.get_mask(budget=max_new_tokens)
    return max_new_tokens


def _goes_on(prompts: Any, longest: int, input_ids: Any) -> bool:
    """Are these rows of the generation that began with int64[rows, n] prompts, and has reached so many columns?"""
    if prompts is None or len(prompts) != len(input_ids):
        return False
    n, length = prompts.shape[1], input_ids.shape[1]
    # An assistant may be on another device.
    return n <= length <= longest + 1 and bool(torch.equal(prompts, input_ids[:, :n].to(prompts.device)))


def too_narrow(width: int, size: int) -> str:
    return (
        f"{HOST}: the model has logits for {width} tokens, the constraint's vocabulary {size}: they are not of one "
        "model, or the model's embeddings were not resized; pass model=model to logits_processor() (or compile for "
        "Vocab.from_tokenizer(tokenizer, model_config=model)), which leaves out tokens that the model cannot choose"
    )


def ends_of(start: State | None) -> tuple[int, ...]:
    """The tokens that end a text."""
    return () if start is None else start.end_ids


def only(mask: Any, tokens: Iterable[int]) -> None:
    """Set int32[W] to these tokens and no others."""
    words = mask.view(np.uint32)
    words[:] = 0
    for token in tokens:
        words[token >> 5] |= np.uint32(1 << (token & 31))


def mask_rows(scores: Any, masks: Any, rows: list[int]) -> None:
    """-inf in these rows of float[B, V] where int32[B, W] has a 0, and beyond, in place, on any device."""
    if scores.device.type in ("cpu", "cuda"):
        apply_bitmask_(scores.detach(), masks, rows=rows)
        return
    allowed = np.zeros((len(rows), scores.shape[-1]), np.bool_)
    bits = np.unpackbits(masks[rows].view(np.uint8), axis=1, bitorder="little")[:, : scores.shape[-1]]
    allowed[:, : bits.shape[1]] = bits
    at = torch.tensor(rows, device=scores.device)
    scores[at] = scores[at].masked_fill(~torch.from_numpy(allowed).to(scores.device), float("-inf"))


_VOCABS: WeakKeyDictionary[Any, tuple[Any, Vocab]] = WeakKeyDictionary()


def vocab_of(tokenizer: Any, model: Any = None) -> Vocab:
    """The tokenizer's vocabulary, made once for it; with a model, its end tokens are those that ``generate`` stops at,
    and its size is the width of the logits.

    Raises VocabError as :meth:`wfsa.Vocab.from_tokenizer` does.
    """
    facts = None if model is None else model_facts(model)
    about = len(tokenizer), getattr(tokenizer, "eos_token_id", None), facts
    kept = _VOCABS.get(tokenizer)
    if kept is None or kept[0] != about:
        kept = about, Vocab.from_tokenizer(tokenizer, model_config=model)
        _VOCABS[tokenizer] = kept
    return kept[1]


def logits_processor(
    source: Any,
    tokenizer: Any,
    *,
    model: Any = None,
    stop_ids: Iterable[int] | None = None,
    threads: int = 1,
    max_new_tokens: int | None = None,
    wrap_up: int = 0,
    schema_options: SchemaOptions | None = None,
    options: CompileOptions | None = None,
) -> ConstraintLogitsProcessor:
    """What goes into ``generate(logits_processor=[...])``.

    source: what every row is to be: a dict, JSON text, a pydantic model, a dataclass, or any Constraint; a list has one
        of these a prompt, None for one that is free.
    tokenizer: the model's, a fast one.
    model: if it is given, the end tokens are those of its generation configuration, at which ``generate`` stops, else
        the tokenizer's; and tokens that it has no logits for are left out.
    max_new_tokens: what ``generate`` gets, too; then every text is completed within it.
    wrap_up: fewer than so many tokens before what is needed then, nothing begins that need not be there.

    Raises SchemaError, LimitError, BudgetError (no text is so short), VocabError (a constraint for another vocabulary,
    an unreadable tokenizer).
    """
    vocab = vocab_of(tokenizer, model)

    def compiled(one: Any) -> Constraint:
        return constraint_of(one, vocab, HOST, schema_options, options)

    made: Any
    if isinstance(source, (list, tuple)):
        made = [None if one is None else compiled(one) for one in source]
    else:
        made = compiled(source)
    return ConstraintLogitsProcessor(
        made, stop_ids=stop_ids, threads=threads, max_new_tokens=max_new_tokens, wrap_up=wrap_up
    )
