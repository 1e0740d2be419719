"""Vocabularies: tokens as bytes, and the sources that they are read from."""

from wfsa.vocab.vocabulary import Vocab, byte_vocab, require_vocab

__all__ = ["Vocab", "byte_vocab", "require_vocab"]
