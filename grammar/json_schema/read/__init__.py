"""Reads a schema: its document and references, the keyword table, and the shapes that its keywords describe."""
