"""How many values a schema has, and which: for items that must differ, and items that are counted."""
