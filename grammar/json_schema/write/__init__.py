"""Writes the grammar: rules and terminals for shapes."""
