"""Structural tags: text that contains free parts, tags and calls (see :mod:`.lowering`)."""

from .lowering import TokenNames, read_structural_tag

__all__ = ["TokenNames", "read_structural_tag"]
