"""``wfsa explore``: a local page that shows what a constraint does, token by token."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, Final

from wfsa.cli import sources
from wfsa.cli.files import read_text, require_folder
from wfsa.cli.text_arguments import drop_refused_line_end
from wfsa.errors import WfsaError
from wfsa.installing import how_to_install
from wfsa.vocab import byte_vocab

EXAMPLES: Final = """\
examples:
  wfsa explore
  wfsa explore person.json --vocab FOLDER_OF_THE_MODEL
  wfsa explore person.json --text-file answer.json --export page.html
  wfsa explore sql.lark --text-file query.sql --port 8000

The page is at http://127.0.0.1:8765/ and for this machine only. Without --vocab it takes the vocabulary of the demo's
model where that is installed (make demo installs it), else single bytes. It needs the extra `explore`:
in a clone of wfsa, pip install '.[explore]'.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, nargs="?", metavar="SCHEMA_OR_GRAMMAR", help="a file, or - (default: examples)"
    )
    parser.add_argument(
        "--kind", choices=sources.KINDS, help="what it is (default: by suffix)"
    )
    parser.add_argument(
        "--text-file",
        type=Path,
        metavar="FILE",
        help="the text to begin with; a line end that closes the file is dropped if only that is refused",
    )
    parser.add_argument("--vocab", type=Path, metavar="V", help="the model's folder, or a file with its vocabulary")
    parser.add_argument("--compare-vocab", type=Path, metavar="V", help="a second one, to compare with")
    parser.add_argument(
        "--eos", type=int, action="append", metavar="ID", help="an end token's id, in place of those in V"
    )
    parser.add_argument("--logits", type=int, metavar="N", help="the width of the model's logits, where larger than V")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default: %(default)s, this machine only)"
    )
    parser.add_argument("--port", type=int, default=8765, help="(default: %(default)s; 0 takes a free one)")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="a name that the page is asked for by, beside --host; repeat",
    )
    parser.add_argument(
        "--items", type=Path, metavar="FILE", help="an item index, of wfsa items build, to show as a trie"
    )
    parser.add_argument("--export", type=Path, metavar="PAGE.html", help="write one file that needs no server, and end")
    parser.add_argument("--max-seconds", type=float, default=20.0, help="for one compilation (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    first = _first(arguments)
    try:
        from wfsa.explorer import serve
    except ImportError as error:
        what = f"explore needs starlette and uvicorn ({error}): {how_to_install('explore')}"
        raise WfsaError(what) from None
    from wfsa.explorer import vocabularies
    from wfsa.explorer.compiled import Limits

    found = vocabularies.offered(arguments.vocab, arguments.compare_vocab, eos=arguments.eos, logits=arguments.logits)
    if not 0 <= arguments.port < 1 << 16:
        raise WfsaError(f"--port {arguments.port}: a number from 0 to 65535 is wanted")
    if not 0 < arguments.max_seconds < float("inf"):  # nor is it, of what is no number
        raise WfsaError(f"--max-seconds {arguments.max_seconds}: a number above 0 is wanted")
    limits = Limits(seconds=arguments.max_seconds)
    if arguments.export is not None:
        return _export(arguments, first, found, limits)
    items = None
    if arguments.items is not None:
        from wfsa.items import ItemIndex

        items = ItemIndex.load(arguments.items)
    more = {"items": items, "model": vocabularies.small_model(found)}
    with serve.Server(
        found, arguments.host, arguments.port, names=arguments.name, first=first, limits=limits, **more
    ) as server:
        print(f"wfsa explore: {server.address}  (Ctrl-C ends it)", file=sys.stderr, flush=True)
        server.run()
    return 0


def _export(arguments: argparse.Namespace, first: dict[str, Any] | None, found: Any, limits: Any) -> int:
    from wfsa.explorer import export, gallery
    from wfsa.explorer.app import Explorer

    require_folder(arguments.export)
    source = first or gallery.examples()[0]
    asked = {"kind": source["kind"], "source": source["source"], "vocabulary": next(iter(found))}
    html = export.page(export.recorded(Explorer(found, limits=limits), source, asked, source["text"]))
    arguments.export.write_text(html, encoding="utf-8")
    print(f"{arguments.export}: {len(html) / 1e6:,.1f} MB")
    return 0


def _first(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """The source to begin with; None for the first example."""
    source: Path | None = arguments.source
    if source is None:
        if arguments.text_file or arguments.kind:
            raise WfsaError("--text-file and --kind go with a schema or grammar")
        return None
    kind = arguments.kind or sources.kind_of(source)
    if kind is None:
        raise WfsaError(f"{source}: cannot tell what this is; pass --kind json-schema|lark|gbnf|regex")
    content = sources.read_source(source, kind)
    text = "" if arguments.text_file is None else _text(arguments.text_file, kind, content, arguments.max_seconds)
    return {"title": source.name, "kind": kind, "source": content, "text": text}


def _text(path: Path, kind: str, source: str, seconds: float) -> str:
    """The text to begin with. A source that cannot be compiled is told by the page, with its place."""
    text = read_text(path)
    if not text.endswith("\n"):
        return text
    try:
        with warnings.catch_warnings():  # the page shows them
            warnings.simplefilter("ignore")
            constraint = sources.compile_source(kind, source, byte_vocab(), mode="lazy", max_seconds=seconds)
        return drop_refused_line_end(text.encode(), constraint).decode()
    except WfsaError:
        return text
