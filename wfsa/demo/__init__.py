"""``wfsa demo``: a real language model writes a document under a JSON Schema, in plain NumPy."""
