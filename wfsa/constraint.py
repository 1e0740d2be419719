"""What every constraint is, whatever it was made from: immutable, shared by threads, bound to one vocabulary.

    Constraint                abstract: start, save, load, explain, and what tells about it
      GrammarConstraint       a compiled grammar, schema or regex       wfsa/grammar_constraint.py
      TextConstraint          a closed set of texts                     wfsa/texts/constraint.py
    State                     one sequence under any of them            ext/bindings/state.pyx

A kind says how its file is called (`FILE`) and is found by that name when a file is loaded, so that this module knows
no kind and no kind knows another.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from wfsa._ext.state import State
from wfsa.errors import ArtifactError, DecodingError, StateError
from wfsa.storage import array_file
from wfsa.vocab import Vocab, require_vocab

if TYPE_CHECKING:
    from typing_extensions import Self

    from wfsa.calls import Calls


class FileKind(NamedTuple):
    """How the files of one kind of constraint are told from others."""

    name: str  # for messages: "a wfsa constraint"
    format: str
    version: int


class Constraint(ABC):
    """What may be written.  ``start()`` gives a :class:`State` for one sequence.

    Attributes of every kind: ``vocab``; ``stats``, sizes and times, with the same keys before saving and after loading;
    ``report``, what of a JSON Schema is enforced, else None; ``terminal_names``, for messages.
    """

    __slots__ = ()

    FILE: ClassVar[FileKind] = FileKind("a wfsa constraint", "", 0)
    _kinds: ClassVar[dict[str, type[Constraint]]] = {}  # by the format of their files

    if TYPE_CHECKING:

        @property
        def vocab(self) -> Vocab: ...
        @property
        def terminal_names(self) -> tuple[str, ...]: ...
        @property
        def report(self) -> Any: ...
        @property
        def stats(self) -> Mapping[str, Any]: ...
        @property
        def _core(self) -> Any: ...

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "FILE" in cls.__dict__:
            Constraint._kinds[cls.FILE.format] = cls

    # --- decoding -------------------------------------------------------------------------------------------

    def start(self, *, stop_ids: Iterable[int | str] | None = None) -> State:
        """A state before the first token.

        `stop_ids` are the tokens that end this sequence, in place of the vocabulary's end tokens; an id, the name of a
        special token, or a text, which stands for all tokens with this text.  They are allowed exactly where the text
        may end, never as text, and committing one finishes the state.  ``min_tokens`` counts without them.
        Where no other tokens spell what a stop token spells, what needs it cannot be written any more: masks leave it
        out, as far as ``min_tokens`` is known.
        Raises StateError where every text needs it, where `stop_ids` is empty, unknown or out of range, or where the
        grammar itself takes one of these tokens, or an end token of the vocabulary, by its id.
        """
        return self._start(self._checked_stops(stop_ids))

    @property
    def min_tokens(self) -> int:
        """Tokens with which a text can be written, the end token among them: ``start().min_tokens()``.

        Raises StateError where it is not known, as that does.
        """
        return self.start().min_tokens()

    @property
    def has_min_tokens(self) -> bool:
        """Whether it is known how many tokens a text needs: ``start().has_min_tokens``.

        Where it is not, ``min_tokens`` raises, and masks under a budget are those without one.
        """
        return self.start().has_min_tokens

    @abstractmethod
    def _start(self, stop_ids: list[int] | None) -> State: ...

    def _checked_stops(self, stop_ids: Iterable[int | str] | None) -> list[int] | None:
        if stop_ids is None:
            return None
        if isinstance(stop_ids, (str, bytes)):
            raise StateError(f"stop_ids is one text, {stop_ids!r}; give a list of ids or texts")
        stops = sorted({number for i in stop_ids for number in self._ids_of(i)})
        if not stops:
            raise StateError("stop_ids is empty: the text could never end; None stands for the vocabulary's end tokens")
        if not 0 <= stops[0] <= stops[-1] < self.vocab.n_tokens:
            bad = stops[0] if stops[0] < 0 else stops[-1]
            raise StateError(f"stop id {bad} is out of range: the vocabulary has {self.vocab.n_tokens} tokens")
        taken = self._core.grammar_tokens()
        for what, ids in (("stop id", stops), ("end token", self.vocab.eos_ids.tolist())):
            both = taken.intersection(ids)
            if both:
                raise StateError(f"{what} {min(both)} is a token of the grammar; stop_ids cannot be used with it")
        return stops

    def _ids_of(self, token: int | str) -> list[int]:
        if not isinstance(token, str):
            return [index(token)]
        found = self.vocab.ids_of_text(token)
        if not token or not found:
            raise StateError(
                f"no token of the vocabulary is {token!r}; a stop text of several tokens is the host's (stop=...)"
            )
        return found

    def expand_in_background(self) -> None:  # noqa: B027 - where there is nothing to expand
        """Expand what is missing on a thread of the process, beside decoding, as ``mode="background"`` does at once.

        For a constraint that was compiled lazily, or saved before it was complete.  Returns at once; masks and commits
        are held up by less than a slice of that work.  It ends when all is expanded, at a cap, or with the constraint.
        """

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for that thread, for so many seconds at most; False if it is still at work.

        ``stats["complete"]`` tells whether all is expanded now, or some is left to be expanded on use.
        """
        return True

    # --- files ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _packed(self) -> tuple[dict[str, Any], array_file.Arrays]:
        """The head and the arrays of the file."""

    @classmethod
    @abstractmethod
    def _unpacked(cls, file: array_file.ArrayFile, vocab: Vocab) -> Self:
        """The inverse, for a file whose format, version, vocabulary and checksums are right; raises ArtifactError."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file without code in it that :meth:`load` reads; replaces an existing file in one step.

        The same constraint gives the same bytes (docs/architecture.md says when two equal ones do).  Raises OSError.
        """
        array_file.write(path, *self._packed())

    def __reduce__(self) -> tuple[Any, ...]:
        """By its artifact, and its vocabulary by the vocabulary's own pickle: once for all that one pickle holds."""
        return type(self).from_bytes, (self.to_bytes(), self.vocab)

    def to_bytes(self) -> bytes:
        """The bytes that :meth:`save` writes."""
        return array_file.to_bytes(*self._packed())

    @classmethod
    def load(cls, path: str | os.PathLike[str], vocab: Vocab) -> Self:
        """Read a constraint of this kind, or called on :class:`Constraint` of any kind, that was saved for `vocab`.

        Raises ArtifactError on a file that is damaged, foreign, of another kind or version, or for another vocabulary;
        OSError when it cannot be read.
        """
        require_vocab(vocab)
        return cls._of_file(array_file.read(path), vocab)

    @classmethod
    def from_bytes(cls, data: bytes, vocab: Vocab) -> Self:
        """The inverse of :meth:`to_bytes`; raises ArtifactError as :meth:`load` does."""
        require_vocab(vocab)
        return cls._of_file(array_file.from_bytes(data, "the data"), vocab)

    @classmethod
    def _of_file(cls, file: array_file.ArrayFile, vocab: Vocab) -> Self:
        kind = Constraint._kinds.get(file.format or "")
        if kind is None or not issubclass(kind, cls):
            raise ArtifactError(f"{file.where} is not {cls.FILE.name} (format {file.head.get('format')!r})")
        file.expect(*kind.FILE).expect_vocabulary(vocab.fingerprint)
        file.verify()
        return kind._unpacked(file, vocab)

    # --- what it tells --------------------------------------------------------------------------------------

    @abstractmethod
    def memory(self) -> dict[str, int]:
        """Bytes by part; their sum is :attr:`memory_bytes`.

        What equal constraints share is not in it: see :meth:`wfsa.Vocab.cache_info`.
        """

    @property
    def memory_bytes(self) -> int:
        """Bytes of all parts of :meth:`memory` together."""
        return sum(self.memory().values())

    def grammar_tokens(self) -> frozenset[int]:
        """Ids of the tokens that the grammar writes as such, mostly special ones."""
        return frozenset(self._core.grammar_tokens())

    @abstractmethod
    def stack_depth(self) -> int | None:
        """How many parser states, from the top of the stack, decide a mask; None if no number is enough."""

    @abstractmethod
    def describe(self, terminal: int) -> str:
        """A terminal's name and where it comes from; the number past the last one stands for the end of the text."""

    @abstractmethod
    def _sizes(self) -> str:
        """For repr, in a few words."""

    def __repr__(self) -> str:
        complete = "complete" if self.stats["complete"] else "grows on use"
        vocabulary = f"{self.vocab.n_tokens} tokens {self.vocab.fingerprint[:12]}"
        return f"<wfsa.{type(self).__name__}: {self._sizes()}, {complete}, over {vocabulary}>"

    def explain(self, state: State, token_id: int) -> str:
        """Why `token_id` is allowed or refused in `state`, in one line.

        A constraint from a JSON Schema names the keywords that refuse it, each with its JSON pointer, where that is
        what refuses it; any other, and a text that is no JSON, the terminals that may come next.
        """
        token_id = index(token_id)  # TypeError when it is no integer
        if not 0 <= token_id < self.vocab.n_tokens:
            return f"token id {token_id} is out of range: the vocabulary has {self.vocab.n_tokens} tokens"
        data = self.vocab.tokens[token_id]
        named = f"token {token_id} {data!r}"
        if state.is_finished():
            return f"{named} is refused: the text has ended"
        if token_id in state.get_mask():
            return f"{named} is allowed"
        is_end = token_id in state.end_ids
        if not is_end and token_id in self.vocab.special_ids:
            return f"{named} is refused: a special token is not text; expected {self._expected(state)}"
        probe, good = state.fork(), 0
        while not is_end and good < len(data) and probe.commit_bytes(data[good : good + 1]):
            good += 1
        bad = b"" if is_end else data[good : good + 1]
        reasons = "; ".join(self.reasons(probe.text(), bad))
        after = f" after {data[:good]!r}" if good else ""
        if is_end:
            return f"{named} is refused: the text cannot end here; {reasons or f'expected {self._expected(probe)}'}"
        if reasons:
            return f"{named} is refused: {bad!r} cannot follow{after}; {reasons}"
        return f"{named} is refused: {bad!r} cannot follow{after}; expected {self._expected(probe)}"

    def calls(self, text: str | bytes) -> Calls:
        """Read the tool calls of an answer that was written under this constraint, which ``compile_tools`` made.

        Returns what :func:`wfsa.read_calls` returns: calls with ``name``, ``arguments`` and ``function``, and the text
        around them. A constraint that was saved and loaded has no Python types and gives JSON values.
        Raises DecodingError for a call that is cut off, and under a constraint of another kind.
        """
        raise DecodingError(
            "this constraint is not of tools: compile_tools makes one, and wfsa.read_calls(text, tools, format=...) "
            "reads texts without one"
        )

    def forced_tokens(self, state: State, tokenizer: Any, limit: int = 4096) -> list[int]:
        """What :meth:`wfsa.State.forced_tokens` returns."""
        from wfsa.jump_forward import forced_tokens

        return forced_tokens(state, self.vocab, tokenizer, limit)

    def _expected(self, state: State) -> str:
        return ", ".join(self.describe(t) for t in state.expected_terminals()[:8]) or "nothing"

    def reasons(self, text: bytes, byte: bytes) -> list[str]:
        """Why `byte` (b"" for the end) cannot follow `text`, in the words of what the constraint was made from.

        A constraint from a JSON Schema names keywords with their JSON pointers, any other one nothing.  `text` is the
        beginning of a document.
        """
        return []

