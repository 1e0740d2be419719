"""One reader for EBNF grammar files, and a table for each notation."""
