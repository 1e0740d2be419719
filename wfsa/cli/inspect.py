"""``wfsa inspect``: what an artifact is and has cost."""

from __future__ import annotations

import argparse
import os
from typing import Final

from wfsa.cli import artifact_arguments
from wfsa.cli.tables import facts_table, print_table, report_table

EXAMPLES: Final = """\
examples:
  wfsa inspect person.wfsa
  wfsa inspect person.wfsa --vocab FOLDER_OF_THE_MODEL
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    artifact_arguments.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    constraint, vocab = artifact_arguments.load(arguments)
    depth = constraint.stack_depth()
    facts = {
        "artifact": f"{arguments.artifact} ({os.path.getsize(arguments.artifact) / 1024:,.1f} KB)",
        "vocabulary": repr(vocab),
        "stack depth read": "no bound" if depth is None else str(depth),
        **constraint.stats,
    }
    print_table(facts_table(facts))
    if constraint.report:
        print("\nwhat of the schema is enforced\n")
        print_table(report_table(constraint.report))
    return 0
