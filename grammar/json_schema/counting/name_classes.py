"""The names that a shape's objects can have: those that it speaks of, and all others in classes.

Two names are in one class if the same conditions of the shape hold for them: patterns (``patternProperties``) and
schemas of names (``propertyNames``).  So what a member's value has to satisfy depends on the class alone, and the
classes are a partition of all names that the shape does not list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from wfsa.errors import LimitError

from ...json_text import has_utf8
from ...language import are_disjoint, is_within
from ...regular import ANY_TEXT, Literal, Regular, alt, both, minus
from ..domains.handles import Handle, KeyClass
from ..domains.shape import Shape
from ..domains.types import STRING
from ..read.alternatives import Alternatives
from ..spelling.strings import pattern_language

FEW_ATOMS = 4  # patterns and name schemas in one object that are combined without a look at which exclude each other
MAX_CLASSES = 256  # of names in one object

Atom = tuple[Any, Regular, Regular]


class NameClass(NamedTuple):
    """Names that are not listed and meet the same conditions."""

    texts: Regular
    value: Handle
    wanted: list[tuple[int, Handle]]  # the number of an existential, and what it asks of the value


def listed_names(shape: Shape) -> tuple[str, ...]:
    """The names that a shape speaks of."""
    in_classes = (
        name for keys in _classes(shape) for name in (sorted(keys.names) if keys.only is None else [keys.only])
    )
    return tuple(dict.fromkeys((*shape.objects.properties, *shape.objects.required, *in_classes)))


def value_of(read: Alternatives, shape: Shape, name: str) -> Handle:
    """What the value of a property with this name has to satisfy."""
    handle = shape.objects.member(name)
    for keys, also in shape.objects.universals:
        if read.in_class(name, keys, wide=True):
            handle = read.conjoin(handle, also)
    return handle


def name_classes(read: Alternatives, shape: Shape) -> Iterator[NameClass]:
    """Yield the classes of the names that are not listed and that some value may have.

    A name that may or may not have a format is in no class.  Raises LimitError on more than `MAX_CLASSES`.
    """
    atoms = _atoms(read, shape)
    taken: list[Regular] = [Literal(name.encode()) for name in listed_names(shape) if has_utf8(name)]
    found: list[NameClass] = []
    for inside, outside in _parts(atoms, shape.path):
        chosen = {atoms[k][0] for k in inside}
        handle = shape.objects.additional
        for keys, also in shape.objects.universals:
            if _holds(keys, chosen):
                handle = read.conjoin(handle, also)
        if isinstance(handle, tuple) and handle[0] is False:
            continue
        wanted = [
            (i, asked)
            for i, wanted in enumerate(shape.objects.existentials)
            for keys, asked in wanted
            if _holds(keys, chosen)
        ]
        found.append(NameClass(_texts_of(atoms, inside, outside, taken), handle, wanted))
    times = Counter(one.texts for one in found)
    return (one for one in found if times[one.texts] == 1)  # no text is in two parts, so equal ones are empty


def _atoms(read: Alternatives, shape: Shape) -> list[Atom]:
    """What tells names apart: (its mark in `_holds`, the texts it has for certain, those it may have)."""
    classes = [keys for keys in _classes(shape) if keys.only is None]
    own = ([] if k.pattern is None else [k.pattern] for k in classes)
    patterns = dict.fromkeys(p for k, one in zip(classes, own, strict=True) for p in (*sorted(k.patterns), *one))
    schemas = {id(k.key): k.key for k in classes if k.key is not None}
    atoms: list[Atom] = [(p, pattern_language(p), pattern_language(p)) for p in patterns]
    atoms += [(i, _texts(read, handle), _texts(read, handle, wide=True)) for i, handle in schemas.items()]
    return atoms


def _texts(read: Alternatives, handle: Handle, wide: bool = False) -> Regular:
    """The texts that a schema admits, or may admit."""
    trees: list[Regular] = []
    for shape in read.of_handle(handle):
        if not shape.mask & STRING:
            continue
        if shape.values is not None:
            found = [v for v in shape.values if isinstance(v, str) and read.accepts(v, shape, wide)]
            trees += [Literal(v.encode("utf-8", "replace")) for v in found]
            continue
        tree = shape.strings.language(wide)
        if tree is not None:
            trees.append(tree)
    return alt(*trees)


def _parts(atoms: list[Atom], path: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The classes that atoms part the texts into, as (atoms that they are in, the others); some may be empty.

    Of many atoms any two are compared: which exclude each other, and which lie within another one.
    """
    some = len(atoms) > FEW_ATOMS
    parts: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ())]
    for k, (_, sure, may) in enumerate(atoms):
        excluded = [some and are_disjoint(sure, inner) for _, inner, _ in atoms[:k]]
        within = [some and is_within(sure, outer) for _, _, outer in atoms[:k]]
        holds = [some and is_within(inner, may) for _, inner, _ in atoms[:k]]
        split = []
        for inside, outside in parts:
            if not any(excluded[i] for i in inside) and not any(within[i] for i in outside):
                split.append(((*inside, k), outside))
            if not any(holds[i] for i in inside):
                split.append((inside, (*outside, k)))
        parts = split
        if len(parts) > MAX_CLASSES:
            raise LimitError(
                f"more than {MAX_CLASSES} classes of property names in one object; use fewer patterns of names, or "
                f"such as exclude each other at {path}"
            )
    return parts


def _texts_of(
    atoms: list[Atom], inside: tuple[int, ...], outside: tuple[int, ...], taken: list[Regular]
) -> Regular:
    """The texts that are certainly in some atoms, may not be in others, and are not taken."""
    tree = both(*(atoms[k][1] for k in inside)) if inside else ANY_TEXT
    return minus(tree, alt(*(atoms[k][2] for k in outside), *taken)) if outside or taken else tree


def _classes(shape: Shape) -> list[KeyClass]:
    """The classes of keys of which a shape speaks."""
    objects = shape.objects
    return [keys for keys, _ in objects.universals] + [keys for wanted in objects.existentials for keys, _ in wanted]


def _holds(keys: KeyClass, chosen: set[Any]) -> bool:
    """Whether a key that has the `chosen` atoms and no others, and no name of its own, is in a class."""
    return (
        keys.only is None
        and not keys.patterns & chosen
        and (keys.pattern is None or keys.pattern in chosen)
        and (keys.key is None or id(keys.key) in chosen)
    )
