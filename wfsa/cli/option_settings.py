"""``--set OPTION=VALUE``: fields of the option classes, on the command line."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Final

from wfsa.cli.suggestions import did_you_mean
from wfsa.errors import WfsaError
from wfsa.grammar.json_schema import SchemaOptions

_NO_TEXT: Final = {"progress", "registry"}  # options that no text can give


def add_arguments(parser: argparse.ArgumentParser, of: str) -> None:
    """``--set``; ``of`` says whose options."""
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help=f"a field of {of}; repeat")


def fields(options: type) -> set[str]:
    """The names that ``--set`` takes of an option class."""
    return {field.name for field in dataclasses.fields(options)} - _NO_TEXT


def read(settings: Sequence[str], *options: type) -> dict[str, Any]:
    """The fields of these classes that ``--set`` gives; a value is JSON where it can be read so, else a string."""
    known = set().union(*map(fields, options))
    chosen: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in known:
            hint = did_you_mean(name, known)
            names = ", ".join(sorted(known))
            raise WfsaError(f"--set {setting}: an option is NAME=VALUE with a name out of {names}{hint}")
        try:
            chosen[name] = json.loads(value)
        except (ValueError, RecursionError):
            chosen[name] = value
    return chosen


def schema_options(chosen: dict[str, Any], lenient: bool) -> SchemaOptions:
    """``chosen`` as options of a schema; ``--lenient`` is one of them."""
    try:
        return SchemaOptions(**{**chosen, **({"lenient": True} if lenient else {})})
    except TypeError as error:  # a value of another type than the option's
        raise WfsaError(f"--set: {error}") from None
