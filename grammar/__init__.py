"""Front ends: each reads one notation and returns a :class:`~wfsa.grammar.ir.Grammar`."""
