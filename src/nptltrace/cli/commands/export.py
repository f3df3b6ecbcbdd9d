"""`ptt export`: writes a trace in the format of another program."""

from __future__ import annotations

import argparse
from typing import Any

from nptltrace.cli import traces
from nptltrace.cli.options import add_show, add_traces, duration_ns, say
from nptltrace.errors import UsageError
from nptltrace.export import ALIASES, FORMATS, SUFFIXES, Export, load_format

SUMMARY = "write a trace in the format of another program"
EXAMPLE = """\
ptt export --format parquet -o run.parquet run.ptt
ptt export --format csv --table waits -o - run.ptt | head
ptt export --format pprof --show holders -o holders.pb.gz run.ptt"""
_WIDTH = max(map(len, FORMATS))
DESCRIPTION = """\
Each format keeps every wait and every wake-up. `collapsed` is another name of `folded`. Formats:

""" + "\n".join(f"  {name:<{_WIDTH}} {summary}" for name, summary in FORMATS.items())


def _format_or_time(text: str) -> str | int:
    """Return the name of a format unchanged, and parse other texts as a time."""
    if text in {*FORMATS, *ALIASES}:
        return text
    try:
        return duration_ns(text)
    except argparse.ArgumentTypeError:
        names = ", ".join(FORMATS)
        reason = f"{text!r} is neither a time such as 1.5ms nor a format: {names}"
        raise argparse.ArgumentTypeError(reason) from None


class _To(traces.Bound):
    """Stores the end of the part, or the format: names of formats are not times."""

    what = "end before this time; the name of a format counts as --format"
    parse = staticmethod(_format_or_time)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store a value."""
        if isinstance(values, str):
            namespace.format = values
        else:
            super().__call__(parser, namespace, values, option_string)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_traces(parser)
    parser.add_argument(
        "--format", choices=(*FORMATS, *ALIASES), metavar="FORMAT",
        help="one of the formats above (default: by the end of OUT: "
        f"{', '.join(SUFFIXES)})",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True,
        help="file or directory to write; -: standard output",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.add_argument(
        "--table", dest="tables", metavar="NAME,…", action="append", default=[],
        help="with csv and parquet: write only these tables",
    )  # fmt: skip
    add_show(parser, "with firefox, folded, pprof and speedscope")
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False, end=_To)
    parser.add_argument(
        "--until", dest="end", type=duration_ns, action=traces.Bound, help=argparse.SUPPRESS
    )
    traces.add_rules(parser)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Write the export."""
    from nptltrace._units import size
    from nptltrace.cli.output.progress import Progress
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.export.writing.target import Target
    from nptltrace.trace.traceset import Traceset

    traces.load_rules(args)
    if args.format is None:
        args.format = next((SUFFIXES[end] for end in SUFFIXES if args.output.endswith(end)), None)
    if args.format is None:
        raise UsageError(f"no --format given: there are {', '.join(FORMATS)}")
    chosen = load_format(args.format)
    options = _options(args, chosen.OPTIONS)
    traceset = Traceset(*args.traces)
    warner = traces.Warner(args, traceset)
    symbols = traces.open_symbols(args, traceset)
    scope = traces.answers(args, traceset, symbols).scope
    out = Target(None if args.output == "-" else args.output, force=args.force)
    with Progress(args, lambda: f"{size(out.written())} written"):
        what = chosen.write(Export(traceset, symbols, scope, **options), out)
    warner.say()
    say_unmatched(args, traceset, symbols)
    say(args, f"wrote {what} to {out}")
    return 0


def _options(args: argparse.Namespace, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of the format.

    Args:
        args: The parsed arguments.
        known: Names of the options that the format takes.

    Raises:
        UsageError: The format does not take an option.
    """
    tables = [name for names in args.tables for name in names.split(",") if name]
    options: dict[str, Any] = {"tables": tables, "show": args.show}
    for name, value in options.items():
        if value and name not in known:
            raise UsageError(f"--{name.rstrip('s')} means nothing to {args.format}")
    return {name: options[name] for name in known if options[name]}
