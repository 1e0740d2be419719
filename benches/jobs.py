"""Defines a job: one source to compile, and the texts to walk through it as token ids.

The parent encodes the texts, so that no worker pays memory for an encoder that its engine does not need. A file of jobs
has one JSON object per line. A worker reads it line by line, so only the job that is measured is in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

Kind = Literal["json_schema", "lark", "gbnf"]


@dataclass(frozen=True, slots=True)
class Walk:
    """Token ids to commit one by one.

    `expected` says whether the whole text is a sentence. `cut` says that the ids are only the beginning of the text, so
    that reaching their end gives no verdict.
    """

    ids: list[int]
    expected: bool
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: Kind
    source: Any  # the schema, or the grammar's text
    walks: list[Walk]


def write_jobs(path: Path, jobs: Iterable[Job]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for job in jobs:
            out.write(json.dumps(asdict(job)) + "\n")


def read_jobs(path: Path, first: int = 0) -> Iterator[tuple[int, Job]]:
    """Yield (number, job), beginning with number `first`."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(islice(lines, first, None), first):
            data = json.loads(line)
            walks = [Walk(**walk) for walk in data.pop("walks")]
            yield number, Job(**data, walks=walks)
