"""Catalogues in shards, without a cluster: equal to one machine's index, or told damaged; only what changed is new."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.items.catalogues import CatalogueCase, catalogues, layouts
from wfsa.errors import ArtifactError, ItemError
from wfsa.items import Beams, Catalogue, ItemFilter, ItemIndex
from wfsa.items.item_ids import read_ids
from wfsa.items.shards import Part, assemble, pack
from wfsa.storage.item_shard_file import MANIFEST, Manifest, leading_keys, read_manifest, write_manifest
from wfsa.storage.places import Place

pa = pytest.importorskip("pyarrow", reason="NO PYARROW: shards were not tested")
pq = pytest.importorskip("pyarrow.parquet")


def check_same(found: ItemIndex, wanted: ItemIndex) -> None:
    """Array by array, with types, and every scalar."""
    ours, theirs = found.arrays(), wanted.arrays()
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype, name
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    assert found.fingerprint == wanted.fingerprint and found.levels == wanted.levels
    assert (found.n_items, found.n_leaves, found.layout.depth) == (wanted.n_items, wanted.n_leaves, wanted.layout.depth)
    assert found.has_prefix_items == wanted.has_prefix_items


def ids_of(kind: str | None, n: int, rng: np.random.Generator) -> Any:
    if kind is None:
        return None
    numbers = rng.permutation(n) * 3 - 5
    if kind == "int":
        return numbers
    texts = [f"sku-{x}" if kind == "str" else f"{x:09}" for x in numbers.tolist()]
    return [one.encode() for one in texts] if kind == "bytes" else texts


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(catalogues(), st.data())
def test_shards_together_are_the_index_of_one_build(tmp_path_factory: Any, case: CatalogueCase, data: Any) -> None:
    """Any boundaries, any pieces, ids of any kind, both layouts; row numbers kept or not."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    options = data.draw(layouts(case))
    kind = data.draw(st.sampled_from([None, "int", "str", "bytes"]))
    rows_kept = data.draw(st.sampled_from(["input", "sorted"]))
    n, ids = len(case.rows), ids_of(kind, len(case.rows), rng)
    given_ids = "rank" if rows_kept == "sorted" and (kind is None or not n) else ids if n else None
    wanted = case.build(item_ids=given_ids, **options)
    levels = wanted.levels
    codes = np.zeros((n, len(levels)), levels.code_dtype)
    for row, sequence in enumerate(case.rows):
        codes[row, : len(sequence)] = sequence
    lengths = np.asarray([len(row) for row in case.rows], np.uint8)
    short = None if (lengths == len(levels)).all() else lengths
    numbers = np.arange(n).astype(np.uint32) if rows_kept == "input" else None
    whole = Part(codes, short, numbers, None if ids is None else read_ids(ids))
    keys = leading_keys(codes, short, levels)
    chosen = data.draw(st.lists(st.sampled_from(sorted(set(keys.tolist()))), unique=True, max_size=6)) if n else []
    boundaries = tuple(sorted(chosen))
    ends = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    pieces = [whole.select(np.arange(a, b)) for a, b in zip([0, *ends], [*ends, n], strict=True)]
    split = [piece.split(levels, boundaries) for piece in pieces]
    place = Place.of(tmp_path_factory.mktemp("shards"))
    packed = [pack([part[i] for part in split if len(part[i])], levels, place) for i in range(len(boundaries) + 1)]
    full = [i for i, one in enumerate(packed) if one is not None]
    manifest = Manifest(
        levels, {"name": options["layout"], "head_depth": options["head_depth"], "small": options["small"]},
        kind if n else None, rows_kept, n, tuple(boundaries[i - 1] for i in full[1:]),
        tuple(one.entry for one in packed if one is not None), 1,
    )  # fmt: skip
    write_manifest(place, manifest)
    assert read_manifest(place) == manifest
    found = ItemIndex.load(place.where)
    if rows_kept == "input" or isinstance(given_ids, str):
        check_same(found, wanted)
    else:
        assert found.item_order is None and found.fingerprint != wanted.fingerprint
        for name, array in wanted.layout.arrays().items():
            np.testing.assert_array_equal(found.layout.arrays()[name], array, err_msg=name)
        for leaf in range(wanted.n_leaves):
            assert found.leaf_items(leaf).tolist() == wanted.leaf_items(leaf).tolist()
        live = [one for one in ids if rng.random() < 0.5]
        assert ItemFilter.of_ids(found, live).words.tolist() == ItemFilter.of_ids(wanted, live).words.tolist()
    scratch = tmp_path_factory.mktemp("scratch")
    check_same(ItemIndex.load(f"{place.where}/{MANIFEST}", scratch=scratch), found)


@given(catalogues(max_items=20))
def test_keys_rise_with_the_rows(case: CatalogueCase) -> None:
    levels = case.build().levels
    rows = sorted(case.rows)
    codes = np.zeros((len(rows), len(levels)), np.int32)
    for number, row in enumerate(rows):
        codes[number, : len(row)] = row
    keys = leading_keys(codes, np.asarray([len(row) for row in rows], np.uint8), levels)
    assert (keys[1:] >= keys[:-1]).all()


# --- files --------------------------------------------------------------------------------------------------------

COLUMNS = ["c0", "c1", "c2"]
OPTIONS: dict[str, Any] = {"vocab_size": 20, "columns": COLUMNS, "id_column": "id"}


def write_day(folder: Path, rows: Any, ids: Any, files: int = 3, kind: str = "parquet", group: int = 64) -> Path:
    """Several files of several groups each."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(len(rows)), files)):
        table = pa.table({**{name: rows[part, i] for i, name in enumerate(COLUMNS)}, "id": pa.array(ids).take(part)})
        path = folder / f"part-{number:03}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=group)
        else:
            with pa.ipc.new_file(path, table.schema) as out:
                out.write_table(table, max_chunksize=50)
    return folder


def made_up(n: int = 900, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 20, (n, 3)).astype(np.uint16), rng.permutation(n) * 7


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_of_a_folder(tmp_path: Path, kind: str) -> None:
    rows, ids = made_up()
    day = write_day(tmp_path / "day", rows, ids, kind=kind)
    wanted = ItemIndex.build(rows, ids, 20)
    for source in (day, f"{day}/part-*.{kind}", sorted(day.iterdir())):
        check_same(ItemIndex.build(source, None, 20, columns=COLUMNS, id_column="id"), wanted)
        manifest = ItemIndex.build_distributed(source, tmp_path / "out", address=None, shards=4, **OPTIONS)
        assert len(manifest.shards) == 4 and max(one.n_items for one in manifest.shards) < 300
        check_same(ItemIndex.load(tmp_path / "out"), wanted)
    assert manifest.serial == 3  # the same place, three times


def test_ragged_lists_and_strings(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 9, rng.integers(1, 4)).tolist() for _ in range(300)]
    names = [f"sku-{x}" for x in range(300)]
    pq.write_table(pa.table({"sid": rows, "name": names}), tmp_path / "a.parquet", row_group_size=50)
    given: dict[str, Any] = {"vocab_size": [9, 9, 9], "end_token": 9, "list_column": "sid", "id_column": "name"}
    ItemIndex.build_distributed(tmp_path / "a.parquet", tmp_path / "out", address=None, shards=3, **given)
    check_same(ItemIndex.load(tmp_path / "out"), ItemIndex.build(tmp_path / "a.parquet", None, **given))
    with pytest.raises(ItemError, match="head depth 2, but an item has 1 codes"):
        ItemIndex.build_distributed(tmp_path / "a.parquet", tmp_path / "deep", address=None, head_depth=2, **given)


def test_one_frequent_first_code_is_cut_too(tmp_path: Path) -> None:
    rows, ids = made_up(2000)
    rows[:1900, 0] = 7
    day = write_day(tmp_path / "day", rows, ids)
    manifest = ItemIndex.build_distributed(day, tmp_path / "out", address=None, shards=8, **OPTIONS)
    assert len(manifest.shards) == 8 and max(one.n_items for one in manifest.shards) < 500


def test_an_empty_catalogue(tmp_path: Path) -> None:
    rows, ids = made_up(0)
    day = write_day(tmp_path / "day", rows, ids, files=2)
    ItemIndex.build_distributed(day, tmp_path / "out", address=None, **{**OPTIONS, "vocab_size": [20, 20, 20]})
    found = ItemIndex.load(tmp_path / "out")
    assert found.n_items == 0 and found.root == -1


def test_errors_are_those_of_one_machine(tmp_path: Path) -> None:
    rows, ids = made_up(100)
    rows[77, 1] = 20
    day = write_day(tmp_path / "day", rows, ids)
    with pytest.raises(ItemError, match="code 20 at level 1") as one:
        ItemIndex.build(day, None, 20, columns=COLUMNS, id_column="id")
    with pytest.raises(ItemError) as several:
        ItemIndex.build_distributed(day, tmp_path / "out", address=None, shards=2, **OPTIONS)
    assert str(one.value) == str(several.value)
    assert not (tmp_path / "out" / MANIFEST).exists()
    for options, said in (
        ({"vocab_size": None}, "needs vocab_size"), ({"columns": ["c9"]}, "has no column 'c9'"),
        ({"rows": "any"}, "it is input or sorted"), ({"small": 0}, "small nodes"),
        ({"head_depth": 4}, "head depth 4"), ({"shards": 0}, "0 shards"), ({"layout": "x"}, "layout='x'"),
    ):  # fmt: skip
        with pytest.raises(ItemError, match=said):
            ItemIndex.build_distributed(day, tmp_path / "out", address=None, **{**OPTIONS, **options})
    with pytest.raises(ItemError, match="there are no files"):
        ItemIndex.build_distributed(tmp_path, tmp_path / "out", address=None, **OPTIONS)
    with pytest.raises(FileNotFoundError):
        ItemIndex.build_distributed(tmp_path / "none.parquet", tmp_path / "out", address=None, **OPTIONS)
    with pytest.raises(FileNotFoundError):
        ItemIndex.load(tmp_path)


def test_a_daily_build_writes_what_changed(tmp_path: Path) -> None:
    """A row inserted, one changed and one gone in a range: one file of leaves is new, and no other is touched."""
    rows, ids = made_up(1000)
    order = np.argsort(leading_keys(rows, None, ItemIndex.build(rows, vocab_size=20).levels), kind="stable")
    place = Place.of(tmp_path / "out")
    first = ItemIndex.build_distributed(
        write_day(tmp_path / "d1", rows, ids), place.where, address=None, shards=10, rows="sorted", **OPTIONS
    )
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir() if path.name != MANIFEST}
    touched = order[:3]  # in the first range
    rows2 = np.delete(rows, touched[0], axis=0)
    rows2 = np.insert(rows2, 5, rows[touched[1]], axis=0)
    ids2 = np.insert(np.delete(ids, touched[0]), 5, 99_999)
    day2 = write_day(tmp_path / "d2", rows2, ids2)
    second = ItemIndex.build_distributed(day2, place.where, address=None, rows="sorted", **OPTIONS)
    assert second.boundaries == first.boundaries and second.serial == 2
    assert [a != b for a, b in zip(first.shards, second.shards, strict=True)] == [True] + [False] * 9
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir() if path.name != MANIFEST}
    assert len(after.keys() - before.keys()) == 1 and all(after[name] == time for name, time in before.items())
    # With row numbers, too, what is large stays: numbers lie in files of their own.
    kept = ItemIndex.build_distributed(day2, tmp_path / "kept", address=None, shards=10, **OPTIONS)
    again = ItemIndex.build_distributed(tmp_path / "d1", tmp_path / "kept", address=None, **OPTIONS)
    assert sum(a.leaves != b.leaves for a, b in zip(kept.shards, again.shards, strict=True)) == 1
    check_same(ItemIndex.load(tmp_path / "kept"), ItemIndex.build(rows, ids, 20))


def test_the_cache_fetches_what_is_new_and_maps_the_rest(tmp_path: Path) -> None:
    rows, ids = made_up()
    day, out, cache = write_day(tmp_path / "day", rows, ids), tmp_path / "out", tmp_path / "cache"
    manifest = ItemIndex.build_distributed(day, out, address=None, shards=3, **OPTIONS)
    wanted = ItemIndex.build(rows, ids, 20)
    check_same(ItemIndex.load(out, cache=cache), wanted)
    assert [path.name for path in cache.iterdir()] == [f"{manifest.base}.items"]
    for entry in manifest.files():  # nothing of them is looked at
        (out / entry.file).unlink()
    check_same(ItemIndex.load(out, cache=cache), wanted)
    with pytest.raises(ArtifactError, match="missing"):
        ItemIndex.load(out)


def test_what_is_damaged_or_missing_is_named(tmp_path: Path) -> None:
    rows, ids = made_up(300)
    out = tmp_path / "out"
    manifest = ItemIndex.build_distributed(
        write_day(tmp_path / "day", rows, ids), out, address=None, shards=2, **OPTIONS
    )
    names = [MANIFEST, manifest.shards[1].leaves.file, manifest.shards[0].rows.file]  # type: ignore[union-attr]
    for name in names:
        data = (out / name).read_bytes()
        for at in (len(data) // 3, len(data) - 20):
            for spoilt in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], data + b"\0"):
                (out / name).write_bytes(spoilt)
                with pytest.raises(ArtifactError, match=name):
                    ItemIndex.load(out)
        (out / name).write_bytes(data)
    (out / manifest.shards[0].leaves.file).unlink()
    with pytest.raises(ArtifactError, match=f"{manifest.shards[0].leaves.file} is missing"):
        ItemIndex.load(out)
    (out / MANIFEST).write_text('{"format": "wfsa-item-shards", "version": 9}')
    with pytest.raises(ArtifactError, match="format version 9"):
        ItemIndex.load(out)
    (out / MANIFEST).write_text("[]")
    with pytest.raises(ArtifactError, match=MANIFEST):
        ItemIndex.load(out)


def test_shards_that_do_not_go_together(tmp_path: Path) -> None:
    """Files that are whole by themselves, named by a manifest that is: the arrays are looked at."""
    rows, ids = made_up(300)
    place = Place.of(tmp_path / "out")
    good = ItemIndex.build_distributed(
        write_day(tmp_path / "day", rows, ids), place.where, address=None, shards=2, **OPTIONS
    )
    first, second = good.shards
    from dataclasses import replace

    for bad, said in (
        (replace(good, shards=(second, first)), "does not come after"),
        (replace(good, shards=(first, replace(second, rows=first.rows))), "rows are|row number|row numbers"),
        (replace(good, ids="str"), "ids are int"),
        (replace(good, levels=ItemIndex.build(rows // 2, vocab_size=10).levels), "out of range"),
    ):
        with pytest.raises(ArtifactError, match=said):
            assemble(bad, place)


def test_a_catalogue_without_row_numbers_can_change(tmp_path: Path) -> None:
    rows, ids = made_up(200)
    day = write_day(tmp_path / "day", rows, ids)
    ItemIndex.build_distributed(day, tmp_path / "out", address=None, shards=3, rows="sorted", **OPTIONS)
    found, plain = Catalogue(ItemIndex.load(tmp_path / "out")), Catalogue(ItemIndex.build(rows, ids, 20))
    for catalogue in (found, plain):
        catalogue.change([[1, 2, 3], [0, 0, 0]], [50_000, int(ids[9])], removed=ids[5:15])
    rng = np.random.default_rng(0)
    ours, theirs = found.items.start(1, 50), plain.items.start(1, 50)
    for _ in range(3):
        logits = rng.normal(size=(1, 50, 20)).astype(np.float32)
        ours, theirs = found.items.beam_step(ours, logits), plain.items.beam_step(theirs, logits)
    np.testing.assert_array_equal(ours.sequences, theirs.sequences)
    assert found.items.item_ids(ours.nodes) == plain.items.item_ids(theirs.nodes)
    merged = found.merge()
    assert len(found) == len(plain) == merged.n_items == 192
    assert Beams.start(merged, 1, 2).valid.any()


def test_importing_needs_none_of_the_extras() -> None:
    code = (
        "import sys, wfsa.items, wfsa.cli.items\n"
        "assert not {'ray', 'fsspec', 's3fs', 'pyarrow'} & {name.partition('.')[0] for name in sys.modules}\n"
        "sys.modules['ray'] = sys.modules['fsspec'] = sys.modules['fsspec.core'] = None\n"
        "from wfsa.items import ItemIndex\n"
        "for call, extra in ((lambda: ItemIndex.build_distributed('x.parquet', 'out', 4), 'ray'),\n"
        "                    (lambda: ItemIndex.load('s3://bucket/index'), 'store')):\n"
        "    try:\n        call()\n    except ValueError as e:\n        assert f\"wfsa[{extra}]\" in str(e), e\n"
        "    else:\n        raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parents[2])
