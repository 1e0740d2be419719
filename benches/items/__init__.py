"""Benches of closed sets: item indexes and their steps, sets of texts."""
