"""Docstrings as they are written here, made into Markdown for the API reference.

In the code they are plain text: roles of reST for names, a line or more for each parameter, tables by indentation.
Compiled modules have their signatures in .pyi files and their docstrings in ext/bindings/*.pyx, where they are read.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import griffe

BINDINGS = Path(__file__).resolve().parents[2] / "ext" / "bindings"
_DEFINED = re.compile(r"^( *)(?:cdef class|class|def|cpdef [\w*]+|cpdef) (\w+)")
_DOCSTRING = re.compile(r'\s*(?:"""(.*?)""")', re.DOTALL)
_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):`~?([\w.]+)`")
_PARAMETER = re.compile(r"^((?:\*{0,2}`{0,2}\w+`{0,2})(?:(?:, | and |, and )`{0,2}\w+`{0,2})*)(?:: | {2,})(.*)$")


class Docstrings(griffe.Extension):  # type: ignore[misc,unused-ignore]
    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        if "_ext" in pkg.modules:
            for name, module in pkg.modules["_ext"].modules.items():
                _add_compiled(module, BINDINGS / f"{name}.pyx")
        _convert(pkg)


def _add_compiled(module: griffe.Module, source: Path) -> None:
    """Docstrings of a .pyx, and functions of which the .pyi has nothing but overloads."""
    for name, overloads in module.overloads.items():
        if name not in module.members and overloads:
            module.set_member(name, overloads[-1])
    found = docstrings_of(source.read_text(encoding="utf-8")) if source.exists() else {}
    for place, text in found.items():
        owner: Any = module
        for part in place.split("."):
            owner = owner.members.get(part) if owner is not None and not owner.is_alias else None
        if owner is not None and owner.docstring is None:
            owner.docstring = griffe.Docstring(text, parent=owner)


def docstrings_of(source: str) -> dict[str, str]:
    """Of a .pyx file: "Class", "Class.method" and "function" to docstrings."""
    found: dict[str, str] = {}
    inside = ""
    lines = source.splitlines(keepends=True)
    for number, line in enumerate(lines):
        defined = _DEFINED.match(line)
        if defined is None or len(defined.group(1)) not in (0, 4):
            continue
        indent, name = defined.groups()
        is_class = "class " in line.split("(")[0]
        place = name if not indent else f"{inside}.{name}" if inside else ""
        if not indent:
            inside = name if is_class else ""
        rest = "".join(lines[number : number + 60])
        end = re.search(r":[ \t]*(?:#[^\n]*)?\n", rest)
        text = _DOCSTRING.match(rest, end.end()) if end else None
        if text and place:
            found.setdefault(place, inspect.cleandoc(text.group(1)))
    return found


def _convert(thing: griffe.Object) -> None:
    for member in thing.members.values():
        if not member.is_alias:
            _convert(member)  # type: ignore[arg-type,unused-ignore]
    if thing.docstring is not None:
        names = {parameter.name for parameter in getattr(thing, "parameters", ())} | set(thing.members)
        thing.docstring.value = as_markdown(thing.docstring.value, names)


def as_markdown(text: str, names: set[str]) -> str:
    """`names`: parameters and attributes; a line that begins with some of them and a colon is an entry of a list."""
    written: list[str] = []
    kind = ""  # of the line before: "", "text", "entry", "table"
    for line in _ROLE.sub(_reference, inspect.cleandoc(text)).splitlines():
        entry = _PARAMETER.match(line)
        if not line.strip():
            written, kind = [*written, ""], "" if kind != "entry" else "entry"
            continue
        if entry and all(part.strip("*`") in names for part in re.split(r", and |, | and ", entry.group(1))):
            if kind != "entry":
                written.append("")
            shown = ", ".join(f"`{part.strip('`')}`" for part in re.split(r", and |, | and ", entry.group(1)))
            written, kind = [*written, f"- {shown}: {entry.group(2)}"], "entry"
        elif line.startswith("    "):
            if kind == "text":
                written.append("")
                kind = "table"
            plain = re.sub(r"<autoref[^>]*><code>(.*?)</code></autoref>", r"\1", line)
            written.append(plain if kind == "table" else line)
            kind = kind or "table"
        else:
            if kind in ("entry", "table"):
                written.append("")
            written, kind = [*written, re.sub(r"::$", ":", line)], "text"
    return "\n".join(written)


def _reference(role: re.Match[str]) -> str:
    name = role.group(1)
    whole = name if name.split(".")[0] == "wfsa" else f"wfsa.{name}"
    return f'<autoref optional identifier="{whole}"><code>{name}</code></autoref>'
