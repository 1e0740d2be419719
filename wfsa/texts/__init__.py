"""Closed sets of texts as constraints: :func:`compile_texts`, :func:`compile_choice`."""

from wfsa.texts.constraint import TextConstraint, TextState, TextStats, compile_choice, compile_texts

__all__ = ["TextConstraint", "TextState", "TextStats", "compile_choice", "compile_texts"]
