"""Closed sets: item indexes and their steps, sets of texts."""
