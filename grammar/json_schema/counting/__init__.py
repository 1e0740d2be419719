"""How many values a schema has, and which: for distinct items, counted items and listed names."""
