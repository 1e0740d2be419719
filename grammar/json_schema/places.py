"""Places of a schema: paths as in messages (``$.properties.a[0]``) and JSON pointers (``/properties/a/0``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

Step = str | int

_STEP = re.compile(r'\.([^.\[(]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\(\d+\)')


def segment(name: str) -> str:
    """``.age``, or ``["a b"]`` where the name is not an identifier."""
    return "." + name if name.isidentifier() else f"[{json.dumps(name, ensure_ascii=False)}]"


def path_of_steps(steps: Iterable[Step]) -> str:
    """The path below a schema object: ``.properties.a`` for ``("properties", "a")``."""
    return "".join(segment(step) if isinstance(step, str) else f"[{step}]" for step in steps)


def pointer_of(path: str, outside: Sequence[str] = ()) -> str:
    """The JSON pointer of a path: ``$.items["a b"][0]`` is ``/items/a b/0``.

    `outside` are the addresses of other documents: their places are shown as ``address#/pointer``.
    Other paths that do not begin at ``$`` stay as they are.
    ``(1)`` marks a copy of a resource under a dynamic scope, and is left out.
    """
    if not path.startswith(("$", *outside)):
        return path
    root = max((uri for uri in outside if path.startswith(uri)), key=len, default="")
    steps = []
    for found in _STEP.finditer(path, len(root) or 1):
        name, index, quoted = found.groups()
        if name is not None or index is not None or quoted is not None:
            step = json.loads(quoted) if quoted else name or index
            steps.append(step)
    return (root and root + "#") + pointer(steps)


def pointer(steps: Iterable[Step]) -> str:
    """The JSON pointer of steps from the root (RFC 6901): ``("items", "a/b", 0)`` is ``/items/a~1b/0``."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
