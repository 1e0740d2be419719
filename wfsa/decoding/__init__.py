"""Decoding methods over a constraint, on `torch` and `transformers` models.  Importing `wfsa` does not import this.

    trie_beam_search     beam search whose beams share one KV sequence       trie_beam.py
    TokenConstraint      what the methods ask of a grammar or an item set    token_constraint.py

Every method takes a :class:`wfsa.Constraint`, or any object that satisfies :class:`TokenConstraint`.
"""

from __future__ import annotations

from wfsa.errors import DecodingError

try:
    import torch as _torch  # noqa: F401
    import transformers as _transformers  # noqa: F401
except ImportError as error:  # pragma: no cover - a machine without the extra
    raise ImportError(f"wfsa.decoding needs torch and transformers: pip install 'wfsa[decoding]' ({error})") from error

from wfsa.decoding.token_constraint import GrammarTokens, TokenConstraint, as_token_constraint
from wfsa.decoding.trie_beam import BeamResult, KvUse, trie_beam_search

__all__ = [
    "BeamResult",
    "DecodingError",
    "GrammarTokens",
    "KvUse",
    "TokenConstraint",
    "as_token_constraint",
    "trie_beam_search",
]
