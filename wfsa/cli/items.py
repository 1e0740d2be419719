"""``wfsa items build | inspect | query``: the command line of item indexes.

``build`` reads .npy or Parquet files, ``inspect`` shows sizes by part and by level, ``query`` says what follows a
prefix of codes and which items it is.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from wfsa.cli.files import require_folder
from wfsa.cli.tables import facts_table, print_table
from wfsa.errors import ItemError
from wfsa.items.files import open_npy
from wfsa.items.index import LAYOUTS, ItemIndex
from wfsa.items.interval import SMALL
from wfsa.progress_bar import CompileBar

EXAMPLES: Final = """\
examples:
  wfsa items build catalogue.npy --codes 2048 -o catalogue.items
  wfsa items build catalogue.parquet --list-column sid --id-column item_id --codes 256,256,256 -o catalogue.items
  wfsa items build catalogue.parquet --columns c0 c1 c2 --id-column item_id --codes 256 -o catalogue.items
  wfsa items inspect catalogue.items
  wfsa items query catalogue.items 17 4 2033

A closed set of texts is a constraint: wfsa compile --kind texts.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sub-commands."""
    commands = parser.add_subparsers(dest="items_command", metavar="COMMAND", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        lines = [line for line in EXAMPLES.splitlines() if f"items {name}" in line]
        return commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog="\n".join(["examples:", *lines, ""])
        )

    sub = command("build", "index the items of a .npy or .parquet file")
    sub.add_argument("source", type=Path, help="int[N, L] in a .npy, or a Parquet file with codes in columns or a list")
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="the index to write")
    sub.add_argument("--codes", metavar="V", help="codes a level: one number, or one a level, separated by commas")
    sub.add_argument("--offsets", metavar="T", help="first token of each level, separated by commas (default: 0)")
    sub.add_argument("--logits", type=int, metavar="N", help="entries of the model's logits (default: what is needed)")
    sub.add_argument("--end", type=int, metavar="ID", help="the token that closes an item")
    sub.add_argument("--columns", nargs="+", metavar="NAME", help="a Parquet file's columns of codes, one a level")
    sub.add_argument("--list-column", metavar="NAME", help="its column of lists: all codes of an item")
    sub.add_argument("--id-column", metavar="NAME", help="its column of item ids")
    sub.add_argument("--ids", type=Path, metavar="FILE", help="a .npy file of item ids, one an item")
    sub.add_argument("--rank", action="store_true", help="name items by their rank; keeps no ids")
    sub.add_argument("--layout", choices=LAYOUTS, default="interval", help="of the index (default: %(default)s)")
    sub.add_argument("--head-depth", type=int, metavar="D", help="levels in the dense head (default: by size)")
    sub.add_argument("--small", type=int, default=SMALL, metavar="K", help="leaves of a node without a child list")
    sub.add_argument("--memory", type=int, default=2048, metavar="MB", help="for sorting; more goes through files")
    sub.add_argument("--scratch", type=Path, metavar="FOLDER", help="for those files (default: the system's)")
    sub.add_argument("--threads", type=int, metavar="N", help="that sort (default: one a processor, at most 16)")
    sub = command("inspect", "show an index's sizes by part and by level")
    sub.add_argument("index", type=Path, help="what wfsa items build wrote")
    sub = command("query", "show what may follow a prefix of codes")
    sub.add_argument("index", type=Path, help="what wfsa items build wrote")
    sub.add_argument("codes", type=int, nargs="*", help="the prefix, none for the root")
    sub.add_argument("--limit", type=int, default=20, help="how many codes and items to list (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    commands = {"build": _build, "inspect": _inspect, "query": _query}
    return commands[arguments.items_command](arguments)


def _numbers(text: str | None, name: str) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ItemError(f"--{name} {text!r} is not a list of numbers") from None


def _build(arguments: argparse.Namespace) -> int:
    require_folder(arguments.output)
    codes = _numbers(arguments.codes, "codes")
    if sum(map(bool, (arguments.ids, arguments.id_column, arguments.rank))) > 1:
        raise ItemError("give one of --ids, --id-column and --rank")
    ids: Any = "rank" if arguments.rank else open_npy(arguments.ids) if arguments.ids else None
    begin = time.perf_counter()
    with CompileBar(Console(stderr=True)) as bar:
        index = ItemIndex.build(
            arguments.source,
            ids,
            codes[0] if codes and len(codes) == 1 else codes,
            offsets=_numbers(arguments.offsets, "offsets"),
            logits_size=arguments.logits,
            end_token=arguments.end,
            layout=arguments.layout,
            head_depth=arguments.head_depth,
            small=arguments.small,
            columns=arguments.columns,
            list_column=arguments.list_column,
            id_column=arguments.id_column,
            memory=arguments.memory << 20,
            scratch=arguments.scratch,
            threads=arguments.threads,
            progress=bar,
        )
    seconds = time.perf_counter() - begin
    index.save(arguments.output)
    size = arguments.output.stat().st_size
    each = size / max(index.n_items, 1)
    print(
        f"{arguments.output}: {index.n_items:,} items, {size / 1e6:,.1f} MB ({each:.2f} bytes an item), {seconds:.1f} s"
    )
    return 0


def _inspect(arguments: argparse.Namespace) -> int:
    index = ItemIndex.load(arguments.index)
    layout, levels = index.layout, index.levels
    facts = facts_table(
        {
            "items": index.n_items,
            "distinct sequences": index.n_leaves,
            "layout": f"{layout.name}, head of {layout.depth} levels",
            "prefix items": index.has_prefix_items,
            "end token": "none" if levels.end_token is None else str(levels.end_token),
            "logits": levels.logits_size,
        }
    )
    parts = Table(box=None, pad_edge=False)
    for title in ("part", "bytes", "bytes an item"):
        parts.add_column(title, justify="left" if title == "part" else "right")
    for name, size in index.memory().items():
        parts.add_row(name, f"{size:,}", f"{size / max(index.n_items, 1):.3f}")
    table = Table(box=None, pad_edge=False)
    for title in ("level", "codes", "first token", "widest node"):
        table.add_column(title, justify="right")
    for level, widest in enumerate(layout.widest()):
        table.add_row(str(level), f"{levels.sizes[level]:,}", f"{levels.offsets[level]:,}", f"{widest:,}")
    for one in (facts, parts, table):
        print_table(one)
        print()
    return 0


def _query(arguments: argparse.Namespace) -> int:
    index = ItemIndex.load(arguments.index, verify=False)
    node = np.asarray([index.root], np.int64)
    for level, code in enumerate(arguments.codes):
        if level < index.n_levels and 0 <= code < index.levels.sizes[level]:
            node = index.advance(node, np.asarray([index.levels.offsets[level] + code]))
        else:
            node = np.asarray([-1])
        if node[0] < 0:
            print(f"no item begins with {' '.join(map(str, arguments.codes[: level + 1]))}")
            return 1
    codes, _, low, high = index.layout.expand(int(node[0]))
    ends = index.item_ids(node)[0]
    print(f"{int(index.n_below(node)[0]):,} sequences below, {len(codes):,} codes may follow")
    if ends:
        more = f", … {len(ends) - arguments.limit:,} more" if len(ends) > arguments.limit else ""
        print(f"items here: {', '.join(map(str, ends[: arguments.limit]))}{more}")
    order = np.argsort(low - high, kind="stable")[: arguments.limit]
    for at in order:
        print(f"{int(codes[at]):>8}  {int(high[at] - low[at]):,} sequences")
    if len(codes) > arguments.limit:
        print(f"     ...  {len(codes) - arguments.limit:,} more (--limit)")
    return 0
