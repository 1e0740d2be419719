"""The texts of values: regular expressions for numbers, strings, formats and contents, and finite sets of values."""
