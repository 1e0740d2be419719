"""Explains a schema: the report, why it has no documents, its units, and where the beginning of a text ends."""
