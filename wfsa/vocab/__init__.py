"""Vocabularies: tokens as bytes, and where they are read from."""

from wfsa.vocab.vocabulary import Vocab, require_vocab

__all__ = ["Vocab", "require_vocab"]
