"""`ptt report`: who waited for what, where, how long, and because of whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.cli import traces
from nptltrace.cli.options import (
    add_format,
    add_traces,
    say,
    suggest,
    write_csv,
    write_json,
    write_lines,
)
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from nptltrace.analysis.trace_data import TraceData
    from nptltrace.reports import Report

SUMMARY = "say which threads waited for what, where, and who held it"
DESCRIPTION = """\
Adds up waits and holds by object, thread or call site. Contended waits are those for something that
another thread has; waiting for work (idle), for the end of a thread (join), until a time limit or a
cancellation is told apart. Each contended object comes with those who held it meanwhile, and where
they took it. Waits that never ended are told first, with the cycle if they are a deadlock. Reports
of your own are functions of a Python file, which `--script` names."""
EXAMPLE = """\
ptt report run.ptt
ptt report --by thread --from 2s --to 3s run.ptt
ptt report --object g_lock --by thread,object run.ptt
ptt report --script my_report.py run.ptt
ptt report --format json run.ptt | jq '.objects[0].blamed'"""

# How many causes of a thread's waits the text shows.
_CAUSES = 3

VIEWS = ("object", "thread", "site", "thread,object")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_traces(parser)
    add_format(parser)
    by = parser.add_argument(
        "--by", metavar="WHAT",
        help="what to add up by: object, thread, site or thread,object (default: object); or the "
        "name of a report of your own",
    )  # fmt: skip
    suggest(by, *VIEWS)
    parser.add_argument(
        "--script", metavar="FILE", action="append", default=[],
        help="print the report of this Python file; of several reports --by chooses one",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--top", metavar="N", type=traces.whole, default=10,
        help="how many rows the text shows (default: 10, 0 = all)",
    )  # fmt: skip
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    from nptltrace.analysis.report.contention import contention
    from nptltrace.analysis.report.documents import report_document, report_rows
    from nptltrace.analysis.trace_data import TraceData
    from nptltrace.cli.unmatched import say_no_object, say_unmatched
    from nptltrace.trace.source import Source

    own = _own(args)
    source = Source(args.traces)
    warner = traces.Warner(args, source)
    symbols = traces.open_symbols(args, source)
    scope = traces.scope(args, source, symbols)
    if own is not None:
        warner.say()
        _print_own(own, args, TraceData(source, symbols, scope=scope))
        return 0
    top = args.top or None
    found = contention(
        source,
        symbols,
        window=scope.window,
        only=scope.only,
        named=top if args.format == "text" else None,
        causes=_CAUSES if args.format == "text" else None,
        pairs=args.by == "thread,object",
    )
    warner.say()
    if not say_unmatched(args, source, symbols) and not found.all_objects:
        say_no_object(args)
    if args.format == "text":
        from nptltrace.cli.output.report_text import lines

        name = ", ".join(str(path) for path in source.paths())
        write_lines(lines(found, name=name, by=args.by, top=top))
    elif args.format == "json":
        write_json(report_document(found, by=args.by))
    else:
        write_csv(report_rows(found, by=args.by))
    return 0


def _own(args: argparse.Namespace) -> Report | None:
    """Return the report of a user that is asked for, if it is one.

    Raises:
        UsageError: There is no such report, or its file cannot be read or run.
    """
    from nptltrace.reports import load, load_installed, reports

    names = [name for path in args.script for name in load(path)]
    if args.by is None and len(names) > 1:
        raise UsageError(f"--script has several reports, of which --by chooses: {', '.join(names)}")
    args.by = args.by or (names[0] if names else "object")
    if args.by in VIEWS and not names:
        return None
    for wrong in load_installed():
        say(args, f"warning: a report of an installed package: {wrong}")
    found = reports().get(args.by)
    if found is None:
        raise UsageError(f"--by: there is no {args.by!r}: {', '.join((*VIEWS, *reports()))}")
    return found


def _print_own(report: Report, args: argparse.Namespace, trace: TraceData) -> None:
    from nptltrace.cli.output.own_report import rows_of, write

    try:
        write(report, rows_of(report, trace), args.format, top=args.top or None)
    finally:
        trace.close()
