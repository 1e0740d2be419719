"""JSON Schema's own test suite: every instance, spelled by ``json.dumps``, walked through the compiled constraint.

The floor is in ``json_schema_scores.json``: per draft, apart for the required and the optional groups (with formats),
how many instances get the right verdict, and how many are refused, accepted wrongly, or not judged because the schema
is refused.  ``python -m tests.differential.test_json_schema_suite`` writes it anew.

Order "any", formats asserted but in the group that calls them an annotation, remote documents from the registry.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import wfsa

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "json-schema-test-suite"
FLOOR = Path(__file__).with_name("json_schema_scores.json")
DRAFTS = {"draft4": 4, "draft6": 6, "draft7": 7, "draft2019-09": 2019, "draft2020-12": 2020}
ACCEPTED_WRONGLY = {
    # An identifier in a place that is no schema, behind an unknown keyword, is taken for one.
    ("optional/unknownKeyword", "type matches non-schema in third anyOf"),
    # What a string holds is not looked at: contentMediaType and contentEncoding are annotations.
    ("optional/content", "an invalid JSON document"),
    ("optional/content", "a validly-encoded invalid JSON document"),
    ("optional/content", "an invalid base64 string; not a valid JSON document"),
    ("optional/content", "an invalid base64 string that is valid JSON"),
    ("optional/content", "an invalid base64 string"),
}

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not FOLDER.exists(), reason="needs ../shared/data/json-schema-test-suite"),
]


def score(draft: str) -> tuple[dict[str, dict[str, int]], list[tuple[str, str]]]:
    """Counts by group, and what was accepted wrongly."""
    with gzip.open(FOLDER / "remotes.json.gz") as f:
        remotes: dict[str, Any] = json.load(f)
    vocab = wfsa.Vocab([bytes([b]) for b in range(256)] + [b"</s>"], special_ids=[256], eos_ids=[256])
    counts = {"required": Counter[str](), "optional": Counter[str]()}
    wrong = []
    with gzip.open(FOLDER / f"{draft}.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            formats = "annotate" if row["file"] == "format" else "assert"
            options = wfsa.SchemaOptions(
                property_order="any", formats=formats, registry=remotes, draft=DRAFTS[draft]  # type: ignore[arg-type]
            )
            count = counts["optional" if row["optional"] or row["format"] else "required"]
            try:
                constraint = wfsa.compile_json_schema(row["schema"], vocab, mode="lazy", schema_options=options)
            except (wfsa.SchemaError, wfsa.LimitError) as err:
                if "no document satisfies" not in str(err):
                    count["schema refused"] += len(row["tests"])
                    continue
                constraint = None
            for test in row["tests"]:
                state = constraint.start() if constraint else None
                data = json.dumps(test["data"], ensure_ascii=False).encode("utf-8", "surrogatepass")
                taken = state is not None and state.commit_bytes(data) and state.is_accepting()
                if taken == test["valid"]:
                    count["right"] += 1
                elif taken:
                    count["invalid accepted"] += 1
                    wrong.append((row["file"], test["description"]))
                else:
                    count["valid refused"] += 1
    return {group: dict(sorted(c.items())) for group, c in counts.items()}, wrong


@pytest.mark.parametrize("draft", DRAFTS)
def test_scores(draft: str) -> None:
    got, wrong = score(draft)
    assert set(wrong) <= ACCEPTED_WRONGLY
    for group, floor in json.loads(FLOOR.read_text())[draft].items():
        assert got[group]["right"] >= floor["right"], group


if __name__ == "__main__":
    FLOOR.write_text(json.dumps({draft: score(draft)[0] for draft in DRAFTS}, indent=2) + "\n")
