"""The texts of values: regular languages for numbers, strings, formats and contents, and finite sets of values."""
