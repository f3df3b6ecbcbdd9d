"""`ptt cut`: a part of a trace, by time or by count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._units import plural
from nptltrace.cli import traces
from nptltrace.cli.options import add_trace, say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from nptltrace._binding.libpttread import Cursor

SUMMARY = "write a part of a trace as a new trace"
DESCRIPTION = """\
Writes the events of a time window, or a number of events in time order over all threads. You can
also choose processes, threads, objects and call sites. The new trace keeps the times of the old
trace, always has the begin and end of its threads, and knows the locks that are held and waited
for at its begin."""
EXAMPLE = """\
ptt cut --from 1.5s --to 2s -o stall.ptt run.ptt
ptt cut --start 1000000 --count 50000 -o middle.ptt run.ptt
ptt cut --pid 4711 -o worker.ptt run.ptt
ptt cut --object queue_lock -o queue.ptt run.ptt"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_trace(parser)
    traces.add_output(parser, "directory of the new trace (default: TRACE with -cut in its name)")
    traces.add_filters(parser, events=False)
    traces.add_window(parser)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Write the part."""
    from nptltrace._binding import libpttread
    from nptltrace.analysis.cutting import write_cut
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.copying import Part, default_output
    from nptltrace.trace.traceset import Traceset

    window = args.begin is not None or args.end is not None
    if not window and not args.start and args.count is None and not traces.selection(args):
        raise UsageError(
            "cut needs --from, --to, --start, --count, --pid, --tid, --object or --site"
        )
    source = Traceset(args.trace)
    symbols = traces.open_symbols(args, source)
    warner = traces.Warner(args, source)
    cursor = libpttread.Cursor(source.reader)
    if args.begin is not None:
        cursor.seek_key(source.reader.key_of_time(args.begin))
    if args.end is not None:
        cursor.limit_key(source.reader.key_of_time(args.end))
    _skip(cursor, args.start)
    begin = cursor.place()
    if args.count is not None:
        _skip(cursor, args.count)
        end: libpttread.Position | None = cursor.place()
    elif args.end is not None:
        end = libpttread.Position(source.reader.key_of_time(args.end), 0, 0, 0, 0)
    else:
        end = None
    output = Path(args.output) if args.output else default_output(Path(args.trace), "cut")
    begin_ns = args.begin if not args.start else None
    end_ns = args.end if args.count is None else None
    numbers = traces.selection(args).thread_numbers(source)
    chosen = None if numbers is None else frozenset(numbers)
    passing = traces.passing(args, source, symbols)
    part = Part(begin, end, chosen, passing, begin_ns=begin_ns, end_ns=end_ns)
    written = write_cut(source, output, part, force=args.force)
    warner.say()
    say_unmatched(args, source, symbols)
    none = "" if written.events else ": there is none in this part"
    events = plural(written.events, "event")
    say(args, f"wrote {written.events} {events} to {written.path}{none}")
    return 0


def _skip(cursor: Cursor, count: int) -> None:
    """Read a number of events and drop them."""
    from nptltrace._binding import libpttread

    buffer = libpttread.Buffer(65536, ("id",))
    while count > 0 and (n := cursor.read(buffer, count)):
        count -= n
