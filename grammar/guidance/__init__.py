"""Lark grammars in llguidance's dialect (see :mod:`.reader`)."""
