"""`ptt stat`: counts the content of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import date, duration, seconds, size
from nptltrace.cli import traces
from nptltrace.cli.options import add_format, write_csv, write_json, write_lines
from nptltrace.cli.output.text.table import Table, cut, many
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from nptltrace.trace.statistics import ProcessStat, Statistics

SUMMARY = "show what a trace holds: processes, threads, events, objects, losses"
DESCRIPTION = """\
Counts the events of one or more traces by thread, type and object. The text shows the busiest
threads and objects. JSON has all of them, and CSV has all threads, unless you pass -n."""
EXAMPLE = """\
ptt stat run.ptt
ptt stat --format json run.ptt | jq .event_types
ptt stat -l"""

_WIDTH = 80
_TOP = 10  # threads of a process, and objects, in the text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    traces.add_traces_or_list(parser)
    add_format(parser)
    parser.add_argument(
        "-n", "--top", metavar="N", type=traces.whole,
        help="show the N busiest threads of each process and the N busiest objects; 0 shows all "
        "(default: 10 in the text, all in JSON and CSV)",
    )  # fmt: skip
    traces.add_filters(parser)
    traces.add_window(parser, counts=False)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print the statistics."""
    from nptltrace.analysis.report.documents import stat_document, stat_rows
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.traceset import Traceset

    if args.list_events:
        traces.list_events()
        return 0
    if not args.traces:
        raise UsageError("no trace given (see ptt stat --help)")
    source = Traceset(*args.traces)
    warner = traces.Warner(args, source)
    symbols = traces.open_symbols(args, source, sites=bool(args.site))
    top = (_TOP if args.top is None and args.format == "text" else args.top) or None
    statistics = traces.answers(args, source, symbols).stat(most=top)
    say_unmatched(args, source, symbols)
    warner.say()
    if args.format == "text":
        write_lines(_text(statistics, traces.names(source), top))
        return 0
    if args.format == "json":
        write_json(stat_document(statistics, top))
    else:
        write_csv(stat_rows(statistics, top))
    return 0


# ---- text ----


def _text(statistics: Statistics, name: str, top: int | None) -> Iterator[str]:
    """Yield the lines of the text."""
    yield from _summary(statistics, name)
    for process in statistics.processes:
        yield ""
        yield from _process(process, top)
    if statistics.event_types:
        yield ""
        yield from _types(statistics)
    if statistics.objects:
        yield ""
        yield from _objects(statistics)
    if statistics.uncovered:
        yield ""
        yield "not covered: not all that these modules do is in the trace"
        for item in statistics.uncovered:
            yield f"  {item.get('module', '?')}"
            yield f"    {item.get('why', '?')}"


def _summary(statistics: Statistics, name: str) -> Iterator[str]:
    yield cut(name, _WIDTH)
    processes, threads = len(statistics.processes), statistics.thread_count
    yield (
        f"  {many(statistics.events, 'event')} of {many(threads, 'thread')} in "
        f"{many(processes, 'process', 'processes')}, {duration(statistics.duration_ns)}, "
        f"{size(statistics.bytes)}"
    )
    facts = [f"level {statistics.level}"] if statistics.level else []
    facts += [f"recorded {date(statistics.start_unix_ns)}"] if statistics.events else []
    state = "recorder killed" if statistics.state == "killed" else statistics.state
    facts += [state] if state and state != "complete" else []
    if statistics.nptl not in {"", "stock"}:
        yield f"  thread library: {statistics.nptl}"
    if facts:
        yield f"  {', '.join(facts)}"
    if statistics.lost:
        causes = ", ".join(f"{cause} {n:,}" for cause, n in statistics.lost_by_cause.items())
        yield f"  {many(statistics.lost, 'event')} lost" + (f" ({causes})" if causes else "")
    elif statistics.state == "recovered":
        yield "  no events counted as lost"
    else:
        yield "  no events lost"
    if statistics.untraced_processes:
        untraced = many(statistics.untraced_processes, "process", "processes")
        yield f"  {untraced} ran untraced"
    if statistics.sched == "partial":
        yield "  times without a processor: only around waits, calls and awaited releases"
    if statistics.damage_bytes:
        yield f"  {size(statistics.damage_bytes)} damaged and left out"


def _process(process: ProcessStat, top: int | None) -> Iterator[str]:
    # One line, even if an argument is a script of several lines.
    command = " ".join(" ".join(process.cmdline).split()) or process.exe
    head = f"process {process.pid}"
    yield f"{head}  {cut(command, _WIDTH - len(head) - 2)}"
    shown = process.busiest(top)
    if shown:
        yield f"  {'thread':>8}  {'name':<20}{'events':>16}{'begins':>15}{'ends':>15}"
    for thread in shown:
        begin = "-" if thread.start_ns is None else seconds(thread.start_ns)
        end = "-" if thread.end_ns is None else seconds(thread.end_ns)
        name = cut(thread.name, 20)
        yield f"  {thread.tid:>8}  {name:<20}{thread.events:>16,}{begin:>15}{end:>15}"
    if process.thread_count > len(shown):
        rest = sum(thread.events for thread in process.threads)
        rest -= sum(thread.events for thread in shown)
        more = f"{process.thread_count - len(shown)} more"
        yield f"  {'':>8}  {more:<20}{rest:>16,}"


def _types(statistics: Statistics) -> Iterator[str]:
    yield f"{'events by type':<46}{'count':>16}{'share':>9}"
    for name, n in sorted(statistics.event_types.items(), key=lambda item: -item[1]):
        yield f"  {name:<44}{n:>16,}{100 * n / statistics.events:>8.1f}%"


def _objects(statistics: Statistics) -> Iterator[str]:
    shown = statistics.objects
    pids = len({process.pid for process in statistics.processes}) > 1
    table = Table("objects", 46, {"events": 16, "pid": 9} if pids else {"events": 16})
    yield table.head
    for item in shown:
        what = f"{item.kind} {item.name}" if item.name else f"{item.kind} {item.address:#x}"
        yield table.row(what, f"{item.events:,}", str(item.pid))
    if statistics.object_count > len(shown):
        yield f"  {statistics.object_count - len(shown)} more (-n 0 shows all)"
