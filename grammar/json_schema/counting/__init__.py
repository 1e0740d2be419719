"""Counts and lists the values of schemas: for items that must differ, and items that are counted."""
