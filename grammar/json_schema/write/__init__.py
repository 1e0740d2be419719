"""Writing the grammar: rules and terminals out of shapes."""
