"""Sets of characters by Unicode's properties."""
