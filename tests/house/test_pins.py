"""Each requirement that the Makefile installs has one version in tests/pins.txt, within the range of pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.requirements import requirements

TESTS = Path(__file__).resolve().parents[1]
LISTS = ["build", "dependencies", "demo", "test", "dev", "wheel", "docs", "bench"]


def pins() -> dict[str, Requirement]:
    lines = (TESTS / "pins.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): pin for pin in found}


@pytest.mark.parametrize("name", LISTS)
def test_every_requirement_is_pinned_within_its_range(name: str) -> None:
    for text in requirements([name]):
        wanted = Requirement(text)
        pin = pins()[canonicalize_name(wanted.name)]
        exact = re.fullmatch(r"==(\S+)", str(pin.specifier))
        assert exact, f"{pin} names no single version"
        assert wanted.specifier.contains(exact.group(1)), f"{pin} is not within {wanted}"
