"""Vocabularies: tokens as bytes, and where they are read from."""

from wfsa.vocab.vocabulary import Vocab

__all__ = ["Vocab"]
