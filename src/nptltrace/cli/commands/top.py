"""`ptt top`: the current contention of a running recording."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._dataclasses import replace
from nptltrace.cli import traces
from nptltrace.cli.options import add_format, duration_ns, write_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from nptltrace.analysis.report.live_contention import LiveContention
    from nptltrace.cli.output.top_screen import Screen
    from nptltrace.trace.traceset import Traceset

SUMMARY = "watch contention during a recording"
DESCRIPTION = """\
Shows the locks that threads wait for, the holders, and the last interval: how many contended waits
ended, how long threads waited, and how many threads waited on average. PID is a process that is
being recorded, or its recorder. A snapshot shows the state of about two seconds ago, because by
then all events are on disk. For a complete trace, one snapshot covers the whole trace.

On a terminal, press o, t or s for objects, threads or call sites, space to pause, and q to quit.
Elsewhere, ptt prints the snapshots."""
EXAMPLE = """\
ptt top 4711
ptt top --by thread --interval 5s run.ptt
ptt top --count 0 --format csv run.ptt >contention.csv
ptt top --format json 4711 | jq '.objects[] | select(.waiters > 0)'"""

VIEWS = ("object", "thread", "site")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "trace", metavar="TRACE|PID", help="trace directory, or process that is being recorded"
    )
    add_format(parser)
    parser.add_argument(
        "--by", choices=VIEWS, default="object", help="table to show first (default: object)"
    )
    parser.add_argument(
        "-i", "--interval", metavar="TIME", type=duration_ns, default=1_000_000_000,
        help="time between snapshots (default: 1s)",
    )  # fmt: skip
    parser.add_argument(
        "-c", "--count", metavar="N", type=traces.whole,
        help="stop after N snapshots; 0: when the recording ends (default: 0 on a terminal, 1 "
        "elsewhere)",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--top", metavar="N", type=traces.whole, default=10,
        help="number of rows in a printed snapshot (default: 10; 0: all)",
    )  # fmt: skip
    traces.add_window(parser, counts=False)
    traces.add_filters(parser, events=False)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Show the current contention until the user quits, or the recording ends."""
    from nptltrace.cli.output.top_screen import Screen
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.traceset import Traceset

    source = Traceset(_find(args.trace))
    warner = traces.Warner(args, source)
    warner.say()
    name = traces.names(source)
    if args.format == "text" and sys.stdin.isatty() and sys.stdout.isatty():
        with Screen(name, args.by) as screen:
            last = None
            for last in _snapshots(args, source, args.count or 0, screen):
                screen.show(last)
        if last is not None:
            screen.leave(last)
    else:
        _print(args, name, _snapshots(args, source, 1 if args.count is None else args.count))
    warner.say()
    if not source.running:
        say_unmatched(args, source, traces.open_symbols(args, source))
    return 0


def _find(text: str) -> Path:
    """Return the trace directory, from its path or from the id of a recorded process."""
    from nptltrace.recording.control import trace_of

    path = Path(text)
    return trace_of(int(text)) if text.isascii() and text.isdigit() and not path.exists() else path


def _snapshots(
    args: argparse.Namespace, source: Traceset, count: int, screen: Screen | None = None
) -> Iterator[LiveContention]:
    """Yield a snapshot every interval; events before the first snapshot count in sums only."""
    from nptltrace.analysis.question_scope import Scope
    from nptltrace.analysis.recording_state import is_recorded
    from nptltrace.analysis.report.live_contention import Follower
    from nptltrace.trace.reading.watermark import Settled

    symbols = traces.open_symbols(args, source)
    chosen = traces.selection(args)
    follower = Follower(
        source, symbols, begin_ns=args.begin,
        choose=lambda: Scope.of(source, symbols, chosen).counted,
    )  # fmt: skip
    settled = Settled(source)
    running = is_recorded(source)
    if running:
        follower.read(_earlier(settled.until_ns(), args.end))
        follower.present(named=0)
    number = 0
    while not (count and number == count):
        running = running and (args.end is None or follower.now_ns < args.end)
        if running:
            if _wait(args.interval / 1e9, screen):
                return
            # Before the refresh, so that events up to the end of the recording are read.
            running = is_recorded(source)
            follower.refresh()
            running = running and source.running
        follower.read(_earlier(settled.until_ns() if running else None, args.end))
        yield replace(follower.present(), running=running)
        number += 1
        if not running:
            return


def _earlier(until_ns: int | None, end_ns: int | None) -> int | None:
    """Return the earlier of two times; None stands for the end of the trace."""
    return min((ns for ns in (until_ns, end_ns) if ns is not None), default=None)


def _wait(seconds: float, screen: Screen | None) -> bool:
    """Wait; return whether the user quits."""
    if screen is not None:
        return screen.wait(seconds)
    time.sleep(seconds)
    return False


def _print(args: argparse.Namespace, name: str, snapshots: Iterator[LiveContention]) -> None:
    """Print each snapshot at once: text, a JSON document, or rows of one CSV table."""
    import csv
    import json

    from nptltrace.analysis.report.documents import TOP_COLUMNS, top_document, top_rows
    from nptltrace.cli.output.text import top_text

    out = csv.writer(sys.stdout, lineterminator="\n")
    if args.format == "csv":
        out.writerow(TOP_COLUMNS[args.by])
    for number, snapshot in enumerate(snapshots):
        if args.format == "json":
            sys.stdout.write(json.dumps(top_document(snapshot)) + "\n")
        elif args.format == "csv":
            out.writerows(top_rows(snapshot, by=args.by, top=args.top or None))
        else:
            text = top_text.lines(snapshot, name=name, by=args.by, top=args.top or None)
            sys.stdout.write("\n" if number else "")
            write_lines(line.text for line in text)
        sys.stdout.flush()
