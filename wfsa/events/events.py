"""The events of a text that is being written under a constraint."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from wfsa._ext.events import EventCore
from wfsa.errors import DecodingError
from wfsa.events.locations import Path, SchemaLocations
from wfsa.events.program import Program, document_program

if TYPE_CHECKING:
    from wfsa.constraint import Constraint


class Events(EventCore):
    """The events of one text: what begins, goes on and ends with each token.

    Create it next to a state, and give it what the state has committed: ``events.commit(token)`` returns the list of
    events of the token.  It reads each byte once, so its cost is linear in the text, and it needs no parser's state: it
    may run in another process than the state.  After ``state.rollback(n)`` call ``events.rollback(n)``, and after
    ``state.fork()`` ``events.fork()``.

    An :class:`wfsa._ext.events.Event` has a ``kind``, a ``value``, and the ``pointer``, ``path`` and ``location`` of a
    value (docs/events.md lists the kinds).  Where a text can be read in several ways, an event is given when all of
    them agree on it.  An event is never taken back, except by a rollback.

    constraint: from :func:`wfsa.compile_json_schema`, :func:`wfsa.compile_tools` or
        :func:`wfsa.compile_structural_tag`.
    max_rollback: how many commits can be taken back; the memory is that of the open path, and of these commits.

    Raises DecodingError for a constraint of another kind.
    """

    def __init__(self, constraint: Constraint, *, max_rollback: int = 256) -> None:
        form = form_of(constraint)
        special = {
            number: name.encode()
            for name, number in constraint.vocab.special_names.items()
            if constraint.vocab.tokens[number] != name.encode()
        }
        super().__init__(constraint.vocab.core, form.program, form.locate, special, max_rollback)


class AnswerForm:
    """The form of the texts of a constraint: a program, and the schemas of the documents in it."""

    def __init__(self, source: Any) -> None:
        self._source = source

    @cached_property
    def program(self) -> Program:
        return document_program()

    @cached_property
    def _locations(self) -> SchemaLocations:
        return SchemaLocations(self._source.schema, self._source.options)

    def locate(self, tag: int, path: Path) -> str:
        return self._locations(path)


def form_of(constraint: Constraint) -> AnswerForm:
    """Returns the form of a constraint's texts. Raises DecodingError if it is not known."""
    source = getattr(constraint, "source", None)
    if source is None:
        raise DecodingError(
            "events need a constraint of compile_json_schema, compile_tools or compile_structural_tag; this one comes "
            "from a grammar, a pattern or texts, or its schema was not kept in its file"
        )
    return AnswerForm(source)
