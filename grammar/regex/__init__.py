"""Regular expressions of Python and ECMA-262 as regular languages."""
