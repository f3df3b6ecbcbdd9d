"""`ptt view`: the events of a trace, one line each."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from nptltrace.cli import traces
from nptltrace.cli.options import add_format, columns
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from nptltrace.trace.printing import Printer
    from nptltrace.trace.traceset import Traceset

SUMMARY = "print the events of a trace"
DESCRIPTION = """\
Prints the events of one or more traces in time order: as sentences (text), as one line per event
for scripts (raw: time in ns, pid, tid, cpu, event, object, call site, fields), as JSON lines, or
as CSV. Times count from the start of the trace. Text leaves out events of the scheduler (SCHED_*):
pass --all or --event SCHED to see them."""
EXAMPLE = """\
ptt view run.ptt
ptt view --event MUTEX --object g_lock --from 1.5ms --count 50 run.ptt
ptt view --event COND --format raw run.ptt | awk '{ print $5 }'
ptt view --stacks --event MUTEX_WAIT run.ptt
ptt view --follow run.ptt"""

_POLL_S = 0.1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    traces.add_traces_or_list(parser)
    add_format(parser, ("text", "raw", "jsonl", "csv"))
    traces.add_filters(parser)
    traces.add_window(parser)
    traces.add_names(parser)
    parser.add_argument(
        "-a", "--all", dest="scheduler", action="store_true",
        help="with text: print events of the scheduler (SCHED_*) too",
    )  # fmt: skip
    parser.add_argument(
        "--stacks", action="store_true",
        help="with text: print the call stack below each event that has one",
    )  # fmt: skip
    parser.add_argument(
        "-f", "--follow", action="store_true", help="follow a trace that is being recorded"
    )


def run(args: argparse.Namespace) -> int:
    """Print the events."""
    from nptltrace.cli.unmatched import say_no_event, say_unmatched
    from nptltrace.trace.printing import CSV_HEADER, Printer
    from nptltrace.trace.traceset import Traceset

    if args.list_events:
        traces.list_events()
        return 0
    if args.stacks and args.format != "text":
        raise UsageError("--stacks needs --format text")
    args.scheduler = args.scheduler or args.format != "text"
    source = Traceset(*args.traces)
    warner = traces.Warner(args, source)
    warner.say()
    out = sys.stdout.buffer
    write: Callable[[memoryview], object] = out.write
    if args.format == "text" and sys.stdout.isatty():
        from nptltrace.cli.output.text.folding import Folder

        write = Folder(out.write, columns()).write
    symbols = traces.open_symbols(args, source)
    printer = Printer(
        source,
        symbols,
        traces.selection(args),
        style=args.format,
        write=write,
        start=args.start,
        count=args.count,
        stacks=args.stacks,
    )
    if args.format == "csv":
        out.write(CSV_HEADER.encode())
    if args.begin is not None:
        printer.cursor.seek_key(source.reader.key_of_time(args.begin))
    if args.follow:
        _follow(args, source, printer, warner)
    else:
        _limit(args, source, printer)
        printer.run()
    out.flush()
    warner.say()
    if not args.follow and not printer.printed and not say_unmatched(args, source, symbols):
        say_no_event(args, source)
    return 0


def _limit(
    args: argparse.Namespace, source: Traceset, printer: Printer, ts: int | None = None
) -> None:
    """Stop before `--to`, or before `ts` if that is earlier."""
    ends = [end for end in (args.end, ts) if end is not None]
    if ends:
        printer.cursor.limit_key(source.reader.key_of_time(min(ends)))
    else:
        printer.cursor.no_limit()


def _follow(
    args: argparse.Namespace, source: Traceset, printer: Printer, warner: traces.Warner
) -> None:
    """Print the events so far, then new events.

    The collector writes streams one after another, so a stream may be ahead of older events in
    another stream. Therefore each round stops where the trace ended one round before.
    """
    from nptltrace.analysis.recording_state import is_recorded

    horizon = source.end_ns()
    running = is_recorded(source)
    while True:
        _limit(args, source, printer, horizon if running else None)
        printer.run()
        sys.stdout.buffer.flush()
        past = args.end is not None and horizon is not None and horizon > args.end
        if not running or printer.done or past:
            return
        horizon = source.end_ns()
        time.sleep(_POLL_S)
        # Before the refresh, so that events up to the end of the recording are read.
        running = is_recorded(source)
        source.refresh()
        running = running and source.running
        printer.cursor.refresh()
        printer.renew()
        warner.say()
