"""`wfsa items` with files as a shop has them: columns are named, and exit codes say what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfsa.cli import main
from wfsa.items import ItemIndex


def test_build_from_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, out = tmp_path / "cat.parquet", tmp_path / "x.items"
    pq.write_table(pa.table({"item_id": [7, 8], "c0": [1, 2], "c1": [3, 4], "sid": [[1, 3], [2, 4]]}), source)
    assert main(["items", "build", str(source), "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert "--columns c0 c1" in said and "item_id int64, c0 int64, c1 int64, sid list<" in said and not out.exists()
    for named in (["--columns", "c0", "c1"], ["--list-column", "sid"]):
        command = ["items", "build", str(source), *named, "--id-column", "item_id", "-o", str(out)]
        assert main(command) == 0
        index = ItemIndex.load(out)
        assert index.n_levels == 2 and index.leaf_items(0).tolist() == [7]
    assert main([*command, "--rank"]) == 2
    assert "one of --ids, --id-column and --rank" in capsys.readouterr().err
