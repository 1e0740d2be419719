r"""The formats whose language is regular and beyond dispute, as languages of texts.

A format that is not here is an annotation, as the specification has it by default; the report says so.

    date        RFC 3339 full-date of a day that exists: 29 February in leap years only
    time        RFC 3339 full-time, with its offset; "T" and "Z" in either case
    date-time   both
    uuid        8-4-4-4-12 hexadecimal digits
    ipv4        four decimal numbers up to 255 without leading zeros
    ipv6        RFC 4291 section 2.2, with an embedded ipv4 at the end, without a zone
    duration    RFC 3339 appendix A: ``P1Y2M3DT4H5M6S``, ``P2W``; a unit may be left out at the ends only

Narrowed: a leap second is the last of a UTC day.  It is read as ``23:59:60`` with an offset of zero; the same instant
written in another zone is refused.
"""

from __future__ import annotations

from wfsa.grammar.regex import parse_regex
from wfsa.grammar.regular import Literal, Regular, alt, cat, repeat

# Patterns in the Python dialect, end to end; [0-9] and not \d, which is Unicode there.
_YEAR = "[0-9]{4}"
_FOUR_DIVIDES = "(?:[02468][048]|[13579][26])"  # two digits that 4 divides
_LEAP_YEAR = f"(?:{_FOUR_DIVIDES}00|[0-9]{{2}}(?:0[48]|[2468][048]|[13579][26]))"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    f"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_PARTS = r"(?:\.[0-9]+)?"
_TIME = (
    f"(?:{_HOUR}:{_SIXTY}:{_SIXTY}{_PARTS}(?:[zZ]|[+-]{_HOUR}:{_SIXTY})"
    f"|23:59:60{_PARTS}(?:[zZ]|[+-]00:00))"
)
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_GROUP = "[0-9a-fA-F]{1,4}"
_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_DURATION = (
    "P(?:[0-9]+W"
    "|(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)(?:T@)?"
    "|T@)"
).replace("@", "(?:[0-9]+S|[0-9]+M(?:[0-9]+S)?|[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?)")


def _ipv6() -> Regular:
    group = parse_regex(_GROUP)
    colon, gap, ipv4 = Literal(b":"), Literal(b"::"), parse_regex(_IPV4)

    def groups(low: int, high: int) -> Regular:
        """`low` to `high` groups with colons between them."""
        some = cat(group, repeat(cat(colon, group), max(low - 1, 0), high - 1))
        return some if low else alt(Literal(b""), some)

    def ending(high: int) -> Regular:
        """Up to `high` groups, of which the last two may be an IPv4 address."""
        if high < 2:
            return groups(0, high) if high else Literal(b"")
        return alt(groups(0, high), cat(repeat(cat(group, colon), 0, high - 2), ipv4))

    whole = [groups(8, 8), cat(repeat(cat(group, colon), 6, 6), ipv4)]
    # "::" stands for one group of zeros or more, so up to seven are written around it.
    return alt(*whole, *(cat(groups(n, n) if n else Literal(b""), gap, ending(7 - n)) for n in range(8)))


_SOURCES = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}[tT]{_TIME}",
    "uuid": _UUID,
    "ipv4": _IPV4,
    "duration": _DURATION,
}
NAMES = frozenset((*_SOURCES, "ipv6"))
_made: dict[str, Regular] = {}


def format_language(name: str) -> Regular | None:
    """The texts of a format, or None if it is only an annotation here."""
    got = _made.get(name)
    if got is None and name in NAMES:
        got = _made[name] = _ipv6() if name == "ipv6" else parse_regex(_SOURCES[name])
    return got


