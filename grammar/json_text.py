"""JSON text that comes from outside, as a value: fractions are exact, and whatever is wrong is a ValueError."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any


def has_utf8(text: str) -> bool:
    """Whether a text can be written in UTF-8, and so in a document: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_json(text: str | bytes | bytearray, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """The value, with a Decimal for each number that has a fraction or an exponent.

    `parse_constant` is called with NaN, Infinity and -Infinity; None: they are floats.
    Raises ValueError for what is not JSON, nests too deeply, or has a number that Python cannot hold.
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("arrays and objects nest deeper than Python's stack") from None
    except ArithmeticError:
        raise ValueError("the exponent of a number is beyond 999,999,999,999,999,999") from None
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        # Of int(): its own text tells programmers how to raise the limit.
        raise ValueError(f"a whole number has more than {sys.get_int_max_str_digits():,} digits") from None
