"""`ptt report`: waits by object, thread and call site, with their holders and wakers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.cli import traces
from nptltrace.cli.options import (
    add_format,
    add_show,
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

    from nptltrace.analysis.answers import Answers
    from nptltrace.analysis.gil import GilLine
    from nptltrace.reports import Report
    from nptltrace.trace.traceset import Traceset

SUMMARY = "show who waited for which lock, where, and who held it"
DESCRIPTION = """\
Adds up waits and holds by object, thread, call site or call stack. A wait is contended if another
thread has the lock. Waits for work (idle), for the end of a thread (join), until a time limit, and
until a cancellation are listed apart. For each contended object, the report names the holders and
where they took the lock. Waits that never ended come first, with the cycle if they are a deadlock.
With -v, entries have the call stacks of waiters and holders. With --script, a Python file adds
reports of your own."""
EXAMPLE = """\
ptt report run.ptt
ptt report --by thread --from 2s --to 3s run.ptt
ptt report --object g_lock --by thread,object run.ptt
ptt report --by stack --show holders --bottom-up run.ptt
ptt report --columns name,holds,hold_max_ns --sort hold_max_ns run.ptt
ptt report --script my_report.py run.ptt
ptt report --format json run.ptt | jq '.objects[0].blamed'"""

# Causes of a thread's waits in the text.
_CAUSES = 3

VIEWS = ("object", "thread", "site", "thread,object", "stack")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from nptltrace.reports import built_in

    add_traces(parser)
    add_format(parser)
    by = parser.add_argument(
        "--by", metavar="WHAT",
        help="add up by object, thread, site, thread,object or stack (default: object); or the "
        f"name of a report ({', '.join([*built_in(), 'or your own'])})",
    )  # fmt: skip
    suggest(by, *VIEWS, *built_in())
    parser.add_argument(
        "--script", metavar="FILE", action="append", default=[],
        help="print the report of this Python file; choose between several reports with --by",
    )  # fmt: skip
    add_show(parser, "with --by stack")
    parser.add_argument(
        "--bottom-up", action="store_true",
        help="with --by stack: start at the call sites instead of the outermost functions",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--top", metavar="N", type=traces.whole, default=10,
        help="number of rows in the text (default: 10; 0: all)",
    )  # fmt: skip
    parser.add_argument(
        "--sort", metavar="COLUMN",
        help="print a table, sorted by this column: a name of the CSV, such as wait_max_ns",
    )  # fmt: skip
    parser.add_argument(
        "--columns", metavar="NAME,…", action="append", default=[],
        help="print a table of these columns: names of the CSV",
    )  # fmt: skip
    parser.add_argument(
        "--gil", action="store_true",
        help="for Python programs: show who held the interpreter lock (GIL) and who waited for it, "
        "by thread and line",
    )  # fmt: skip
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.traceset import Traceset

    table = args.sort or args.columns
    if args.gil and (args.by or args.script or args.show or args.bottom_up or table):
        raise UsageError(
            "--gil cannot be combined with --by, --script, --show, --sort or --columns"
        )
    report = None if args.gil else _report_of(args)
    if (args.show or args.bottom_up) and args.by != "stack":
        raise UsageError(f"{'--show' if args.show else '--bottom-up'} needs --by stack")
    if args.bottom_up and table:
        raise UsageError(
            "--bottom-up prints a tree: it cannot be combined with --sort or --columns"
        )
    traceset = Traceset(*args.traces)
    warner = traces.Warner(args, traceset)
    symbols = traces.open_symbols(args, traceset)
    answers = traces.answers(args, traceset, symbols)
    if report is not None:
        if table:
            raise UsageError(f"--sort and --columns do not apply to the report {report.name}")
        from nptltrace.cli.output.rows_report import write

        warner.say()
        write(report.name, report.title, answers.rows(report), args.format, top=args.top or None)
    elif args.gil:
        gil = answers.gil()
        warner.say()
        _print_gil(args, traceset, gil)
    elif table:
        _print_table(args, answers, warner)
    elif args.by == "stack" and args.format == "text":
        from nptltrace.cli.output.text.stack_text import lines

        stacks = answers.stacks(args.show or "waits")
        warner.say()
        say_unmatched(args, traceset, symbols)
        name, top = traces.names(traceset), args.top or None
        write_lines(lines(stacks, name=name, bottom_up=args.bottom_up, top=top))
    else:
        _print_report(args, answers, warner)
    return 0


def _print_report(args: argparse.Namespace, answers: Answers, warner: traces.Warner) -> None:
    from nptltrace.analysis.report.documents import report_document, report_rows
    from nptltrace.cli.output.text.report_text import lines
    from nptltrace.cli.unmatched import say_no_object, say_unmatched

    stacks = answers.stacks(args.show or "waits") if args.by == "stack" else None
    is_text, top = args.format == "text", args.top or None
    contention = answers.report(
        named=top if is_text else None,
        causes=_CAUSES if is_text else None,
        pairs=args.by == "thread,object",
        stacks=args.by if args.verbosity > 0 and is_text else "",
    )
    warner.say()
    if not say_unmatched(args, answers.traceset, answers.symbols) and not contention.all_objects:
        say_no_object(args)
    if is_text:
        part = bool(traces.selection(args))
        write_lines(
            lines(contention, name=traces.names(answers.traceset), by=args.by, top=top, part=part)
        )
    elif args.format == "json":
        write_json(report_document(contention, by=args.by, stacks=stacks))
    else:
        write_csv(report_rows(contention, by=args.by, stacks=stacks))


def _print_table(args: argparse.Namespace, answers: Answers, warner: traces.Warner) -> None:
    """Print the report as a table with the columns and the order that the user chose."""
    from nptltrace.analysis.report.documents import report_rows
    from nptltrace.cli.output.report_table import report_table
    from nptltrace.cli.output.rows_report import write
    from nptltrace.cli.unmatched import say_no_object, say_unmatched

    stacks = answers.stacks(args.show or "waits") if args.by == "stack" else None
    contention = answers.report(pairs=args.by == "thread,object")
    warner.say()
    if not say_unmatched(args, answers.traceset, answers.symbols) and not contention.all_objects:
        say_no_object(args)
    table = report_table(
        list(report_rows(contention, by=args.by, stacks=stacks)), by=args.by, sort=args.sort,
        columns=[name for names in args.columns for name in names.split(",") if name],
        short=args.format == "text",
    )  # fmt: skip
    write(args.by, traces.names(answers.traceset), table, args.format, top=args.top or None)


def _print_gil(args: argparse.Namespace, traceset: Traceset, usage: list[GilLine]) -> None:
    from dataclasses import asdict, fields

    from nptltrace.analysis.gil import GilLine
    from nptltrace.cli.output.text.gil_text import lines

    if args.format == "json":
        write_json({"report": "gil", "rows": [asdict(line) for line in usage]})
    elif args.format == "csv":
        names = [field.name for field in fields(GilLine)]
        write_csv([names, *([getattr(line, name) for name in names] for line in usage)])
    else:
        write_lines(lines(usage, name=traces.names(traceset), top=args.top or None))


def _report_of(args: argparse.Namespace) -> Report | None:
    """Return the chosen report of `nptltrace.reports` or of a user; None for other values of --by.

    Raises:
        UsageError: There is no such report, or its file cannot be read or run.
    """
    from nptltrace.reports import load, load_installed, reports

    names = [name for path in args.script for name in load(path)]
    if args.by is None and len(names) > 1:
        raise UsageError(f"the scripts have several reports; choose with --by: {', '.join(names)}")
    args.by = args.by or (names[0] if names else "object")
    if args.by in VIEWS and not names:
        return None
    for wrong in load_installed():
        say(args, f"warning: a report of an installed package: {wrong}")
    report = reports().get(args.by)
    if report is None:
        raise UsageError(f"--by: there is no {args.by!r}: {', '.join((*VIEWS, *reports()))}")
    return report
