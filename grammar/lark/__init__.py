"""Lark grammars."""
