"""What is said about a schema: the report, why it has no documents, its units, where the beginning of a text ends."""
