"""`make demo` does not compile the item modules, so the demo must not import them."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.requirements import ROOT

PROGRAM = """
import sys
from wfsa.cli import main
try:
    main(["demo", "--help"])
except SystemExit:
    pass
import wfsa.demo.run
loaded = sorted(name for name in sys.modules if name.startswith(("wfsa._ext.SKIPPED", "wfsa.items")))
assert not loaded, loaded
"""


def test_the_demo_does_without_the_modules_that_its_build_skips() -> None:
    skipped = re.search(r"--skip (\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert skipped and [*(ROOT / "ext" / "bindings").glob(f"{skipped.group(1)}*.pyx")]
    program = PROGRAM.replace("SKIPPED", skipped.group(1))
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True)
