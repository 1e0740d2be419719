"""JSON Schemas: the recorded corpus, keywords, what single keywords cost, and the pages that tell of them."""
