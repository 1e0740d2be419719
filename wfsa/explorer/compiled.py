"""From a source and options to a constraint: within limits of size, time and memory, and kept by content.

What is asked for comes from a page, so nothing of it is trusted: each choice is looked up among those that there are,
and what compiling may use is bounded here. Two requests for the same source compile it once: the second waits.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import wfsa
from wfsa.compile_options import Mode
from wfsa.errors import LimitError, WfsaError
from wfsa.explorer.vocabularies import NamedVocab
from wfsa.grammar.guidance.reader import read_any_lark
from wfsa.grammar.ir import Grammar
from wfsa.grammar.json_schema import SchemaOptions, read_json_schema
from wfsa.grammar.json_schema.read.sources import schema_of
from wfsa.grammar.notation.gbnf import read_gbnf
from wfsa.grammar.regex.grammar import read_regex

KINDS: Final = ("json-schema", "lark", "gbnf", "regex")
MODES: Final = ("ahead", "lazy")
SCHEMA_CHOICES: Final = {
    "whitespace": ("flexible", "compact", "python", "indent"),
    "spelling": ("canonical", "any"),
    "property_order": ("declared", "any"),
    "unique_items": ("exact", "unchecked"),
    "formats": ("assert", "annotate"),
    "additional_properties": ("allow", "forbid"),
    "required": ("listed", "all"),
}
MOST_SOURCE: Final = 2_000_000  # characters
_AHEAD: Final = 0.75  # of the time, where a lazy attempt may follow


@dataclass(frozen=True, slots=True)
class Limits:
    """What one compilation may use."""

    seconds: float = 20.0
    memory: int = 2 << 30
    kept: int = 8  # constraints


@dataclass(frozen=True, slots=True)
class Asked:
    """What to compile; equal questions have equal keys."""

    kind: str
    source: str
    vocabulary: str
    mode: Mode = "ahead"
    lenient: bool = False
    schema: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        text = json.dumps([self.kind, self.source, self.vocabulary, self.mode, self.lenient, self.schema])
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]

    @staticmethod
    def of(body: Mapping[str, Any], vocabularies: Mapping[str, Any]) -> Asked:
        """Out of a request; WfsaError for what is not among the choices."""
        source, chosen = body.get("source"), body.get("schema", {})
        if not isinstance(source, str):
            raise WfsaError("source: a text is wanted")
        if len(source) > MOST_SOURCE:
            raise LimitError(f"the source has {len(source):,} characters, the limit is {MOST_SOURCE:,}")
        kind = _among(body, "kind", KINDS, "json-schema")
        vocabulary = _among(body, "vocabulary", tuple(vocabularies), next(iter(vocabularies)))
        mode: Mode = "lazy" if _among(body, "mode", MODES, "ahead") == "lazy" else "ahead"
        if not isinstance(chosen, dict) or not chosen.keys() <= SCHEMA_CHOICES.keys():
            raise WfsaError(f"schema: options out of {', '.join(SCHEMA_CHOICES)} are wanted")
        schema = tuple((name, _among(chosen, name, SCHEMA_CHOICES[name], "")) for name in sorted(chosen))
        if kind != "json-schema":
            return Asked(kind, source, vocabulary, mode)
        return Asked(kind, source, vocabulary, mode, body.get("lenient") is True, schema)

    def schema_options(self) -> SchemaOptions:
        options: dict[str, Any] = dict(self.schema)
        return SchemaOptions(**options, lenient=self.lenient)


def _among(body: Mapping[str, Any], name: str, known: tuple[str, ...], default: str) -> str:
    value = body.get(name, default)
    if not isinstance(value, str) or value not in known:
        raise WfsaError(f"{name}: one of {', '.join(known)} is wanted")
    return value


@dataclass(eq=False)
class Compiled:
    """A constraint with what it was asked as."""

    asked: Asked
    vocabulary: NamedVocab
    constraint: Any
    notes: list[str]
    kept: dict[str, Any] = field(default_factory=dict)  # what panels have made of it
    lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def grammar(self) -> Grammar:
        """What the source says, read once more: a constraint keeps no rules."""
        asked = self.asked
        if asked.kind == "json-schema":
            return read_json_schema(schema_of(asked.source), asked.schema_options()).grammar
        if asked.kind == "lark":
            return read_any_lark(asked.source)
        return read_gbnf(asked.source) if asked.kind == "gbnf" else read_regex(asked.source)

    def facts(self) -> dict[str, Any]:
        constraint = self.constraint
        stats = dict(constraint.stats)
        return {
            "key": self.asked.key,
            "kind": self.asked.kind,
            "mode": self.asked.mode,
            "vocabulary": self.vocabulary.name,
            "notes": self.notes,
            "seconds": stats.pop("seconds"),
            "stages": stats.pop("stages"),
            "sizes": stats,
            "memory": dict(constraint.memory()),
            "memory_bytes": constraint.memory_bytes,
            "stack_depth": constraint.stack_depth(),
            "least_tokens": least_tokens(constraint.start()),
        }


def least_tokens(state: Any) -> int | None:
    """Tokens to the end at least; None where it is not known."""
    try:
        return int(state.min_tokens())
    except WfsaError:
        return None


def compile_asked(asked: Asked, vocabulary: NamedVocab, limits: Limits) -> Compiled:
    """WfsaError where it cannot be compiled within the limits.

    What is too much ahead of time is compiled lazily, in the time that is left.
    """
    compilers = {
        "json-schema": wfsa.compile_json_schema, "lark": wfsa.compile_lark,
        "gbnf": wfsa.compile_gbnf, "regex": wfsa.compile_regex,
    }  # fmt: skip
    compiler: Any = compilers[asked.kind]
    options: dict[str, Any] = {"max_memory": limits.memory}
    if asked.kind == "json-schema":
        options["schema_options"] = asked.schema_options()
    notes: list[str] = []
    until = time.monotonic() + limits.seconds
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            try:
                seconds = limits.seconds * (_AHEAD if asked.mode == "ahead" else 1.0)
                made = compiler(asked.source, vocabulary.vocab, mode=asked.mode, max_seconds=seconds, **options)
            except LimitError as error:
                left = until - time.monotonic()
                if "mode='lazy'" not in str(error) or left <= 0:
                    raise
                made = compiler(asked.source, vocabulary.vocab, mode="lazy", max_seconds=left, **options)
                notes.append(f"compiled lazily: {error}")
        except RecursionError:
            raise LimitError("the source is nested too deeply; flatten it") from None
        except UnicodeEncodeError:
            raise WfsaError("the source is not text: it has half a character (a lone surrogate)") from None
    notes += (str(one.message) for one in caught if issubclass(one.category, UserWarning))
    return Compiled(asked, vocabulary, made, notes)


class Cache:
    """The constraints of late, by key."""

    def __init__(self, vocabularies: Mapping[str, NamedVocab], limits: Limits) -> None:
        self.vocabularies, self.limits = vocabularies, limits
        self._lock = threading.Lock()
        self._made: OrderedDict[str, Future[Compiled]] = OrderedDict()

    def get(self, asked: Asked) -> Compiled:
        """Compiled now, or before, or by another thread just now; raises what compiling raises."""
        with self._lock:
            found = self._made.get(asked.key)
            mine = found is None
            future: Future[Compiled] = Future() if found is None else found
            self._made[asked.key] = future
            self._made.move_to_end(asked.key)
            while len(self._made) > self.limits.kept:
                self._made.popitem(last=False)
        if mine:
            try:
                future.set_result(compile_asked(asked, self.vocabularies[asked.vocabulary], self.limits))
            except BaseException as error:
                future.set_exception(error)
                with self._lock:
                    if self._made.get(asked.key) is future:
                        del self._made[asked.key]
        return future.result()

    def known(self, key: Any, *, touch: bool = True) -> Compiled | None:
        """What was compiled before; it is kept longer for having been asked for, unless that does not count."""
        with self._lock:
            future = self._made.get(key) if isinstance(key, str) else None
            if future is not None and touch:
                self._made.move_to_end(key)
        return future.result() if future is not None and future.done() and not future.exception() else None
