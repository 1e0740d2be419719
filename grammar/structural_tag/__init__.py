"""Structural tags: text with free parts, tags and calls in it (see :mod:`.lowering`)."""

from .lowering import TokenNames, read_structural_tag

__all__ = ["TokenNames", "read_structural_tag"]
