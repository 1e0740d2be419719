"""Files: each format in a module of its own, over one way of writing arrays."""
