"""The project's own error types.

Every message says what is wrong, where (a span, a rule name or a JSON pointer ``$.path``), the value against
the limit where there is one, and what to do about it.

Compiling raises these errors only.  What nobody foresaw becomes a SchemaError, or a GrammarError, that chains it and
asks for a report (:mod:`wfsa.grammar.boundary`).  TypeError and ValueError are for calls that no input explains: an
unknown keyword, an option of another type.
"""

from __future__ import annotations


class WfsaError(ValueError):
    """Base class of every error that wfsa raises on bad input."""


class GrammarError(WfsaError):
    """A Lark, GBNF or regex text, or a grammar built by hand, that cannot be compiled."""


class GrammarWarning(UserWarning):
    """A grammar is taken, but not to the letter; says where and how."""


class SchemaError(WfsaError):
    """A JSON Schema that is malformed, unsupported or satisfied by no document; ends in ``at $.path``."""


class SchemaWarning(UserWarning):
    """A JSON Schema is taken, but probably does not say what is meant: a misspelt keyword; says where and which."""


class LimitError(WfsaError):
    """A limit in :class:`wfsa.CompileOptions` was passed; names the costliest place and the limit to raise."""


class ArtifactError(WfsaError):
    """A file that is not a wfsa artifact, is damaged, or belongs to another vocabulary or format version."""


class VocabError(WfsaError):
    """A vocabulary that is inconsistent, or a tokenizer from which no vocabulary can be read."""


class VocabWarning(UserWarning):
    """The end tokens or the size of a vocabulary are not what every source says, or guessed; says what was taken."""


class StateError(WfsaError):
    """A call that the decoding state cannot serve: commit after the end, rollback too far, a bad buffer."""


class BudgetError(WfsaError):
    """Fewer tokens may come than the text needs to its end; names both numbers."""


class DecodingError(WfsaError):
    """Arguments that a decoding method cannot serve: counts, prompts, a model or a constraint that does not fit."""


class DocumentError(DecodingError):
    """A document that fits its schema and is refused by its type; ``__cause__`` is what the type raised.

    text: the document, as it was written.
    """

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message, text)
        self.text = text

    def __str__(self) -> str:
        return str(self.args[0])


class DecodingWarning(UserWarning):
    """A decoding loop did what a constraint cannot follow, or ended before the text did; says which row and why."""


class ItemError(WfsaError):
    """Items, nodes, beams, logits or filters that an item index cannot take; says which and what would be right."""
