"""Lark as llguidance reads it (see :mod:`.reader`)."""
