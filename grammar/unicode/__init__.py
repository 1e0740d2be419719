"""Sets of characters, by properties of Unicode."""
