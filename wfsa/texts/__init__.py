"""Closed sets of texts as constraints: :func:`compile_texts`."""

from wfsa.texts.constraint import TextConstraint, TextState, TextStats, compile_texts

__all__ = ["TextConstraint", "TextState", "TextStats", "compile_texts"]
