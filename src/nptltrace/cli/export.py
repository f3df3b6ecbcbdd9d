"""`ptt export`: a trace in other people's formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace.cli import _traces
from nptltrace.cli._options import add_traces, say
from nptltrace.errors import UsageError
from nptltrace.export import FORMATS, load_format

if TYPE_CHECKING:
    import argparse

SUMMARY = "write a trace in another program's format"
EXAMPLE = """\
ptt export --to parquet -o run.parquet run.ptt
ptt export --to csv --table waits -o - run.ptt | head"""
DESCRIPTION = "Every export keeps every wait and every wake-up. The formats:\n\n" + "\n".join(
    f"  {name:<9} {summary}" for name, summary in FORMATS.items()
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_traces(parser)
    parser.add_argument("--to", choices=tuple(FORMATS), required=True, help="the format")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="what to write; - is standard output"
    )
    parser.add_argument("--force", action="store_true", help="replace what is already there")
    parser.add_argument(
        "--table", dest="tables", metavar="NAME,…", action="append", default=[],
        help="with csv and parquet: only these tables",
    )  # fmt: skip
    _traces.add_window(parser, counts=False, end="--until")
    _traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Write the export."""
    from nptltrace.analysis.model import Window
    from nptltrace.export._target import Target
    from nptltrace.trace.traceset import Traceset

    chosen = load_format(args.to)
    own = _own(args, getattr(chosen, "OPTIONS", ()))
    traceset = Traceset(*args.traces)
    warner = _traces.Warner(args, traceset.source)
    out = Target(None if args.output == "-" else args.output, force=args.force)
    what = chosen.write(
        traceset,
        out,
        symbols=_traces.open_symbols(args, traceset.source),
        window=Window(args.begin, args.end),
        **own,
    )
    warner.say()
    say(args, f"wrote {what} to {out}")
    return 0


def _own(args: argparse.Namespace, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the options that not all formats take.

    Raises:
        UsageError: One was given that this format does not take.
    """
    given = {"tables": [name for names in args.tables for name in names.split(",") if name]}
    for name, value in given.items():
        if value and name not in known:
            raise UsageError(f"--{name.rstrip('s')} means nothing to {args.to}")
    return {name: given[name] for name in known}
