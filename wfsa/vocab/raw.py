"""What a source says about a vocabulary, before anything is decided.

**Special ids** are the tokens that are never text: control tokens, unknown, unused.

**End ids** are those that the source declares, and no others: a padding token, or the end token of the base model that
a chat model was made from, often has the name of an end, and a row that ends where the model's own loop does not stop
goes on without a constraint. Where a source declares none (a ``tokenizer.json`` by itself, tiktoken), the special
tokens whose names are known to end a text or a turn (:data:`END_NAMES`) are all there is to go by; :class:`wfsa.Vocab`
warns where that gives several.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

END_NAMES: Final = frozenset(
    {
        "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<end_of_turn>", "</s>", "<eos>",
        "<|end|>", "<|return|>", "<｜end▁of▁sentence｜>", "<EOT>", "<|EOT|>", "<|END_OF_TURN_TOKEN|>", "<turn|>",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RawVocab:
    """``tokens[id]`` (``None`` or ``b""`` for an id without text), the ids that are not text, and the declared
    roles."""

    tokens: list[bytes | None]
    special_token_ids: list[int]
    eos_token_ids: list[int]  # as declared, ascending; none where the source declares none
    special_names: dict[str, int] = field(default_factory=dict)
    pad_ids: list[int] = field(default_factory=list)


def declared(ids: Iterable[object]) -> list[int]:
    """Ids without doubles, ascending; None and negative numbers stand for "none" in tokenizers and configurations."""
    return sorted({i for i in ids if isinstance(i, int) and not isinstance(i, bool) and i >= 0})


def named_ends(raw: RawVocab) -> list[int]:
    """The special tokens with the name of an end; padding only if it is the only one."""
    named = declared(i for name, i in raw.special_names.items() if name in END_NAMES)
    return [i for i in named if i not in raw.pad_ids] or named
