"""One reader for grammar files of EBNF, and a table for each notation."""
