"""Closed sets of texts as constraints."""
