"""`ptt stat`: what a trace holds."""

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
threads and objects. JSON and CSV have all of them."""
EXAMPLE = """\
ptt stat run.ptt
ptt stat --format json run.ptt | jq .event_types
ptt stat -l"""

_WIDTH = 80


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    traces.add_traces_or_list(parser)
    add_format(parser)
    parser.add_argument(
        "-n", "--top", metavar="N", type=traces.whole, default=10,
        help="number of threads and objects in the text (default: 10; 0: all)",
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
    top = args.top or None
    named = top if args.format == "text" else None
    found = traces.answers(args, source, symbols).stat(named=named)
    say_unmatched(args, source, symbols)
    warner.say()
    if args.format == "text":
        write_lines(_text(found, traces.names(source), top))
    elif args.format == "json":
        write_json(stat_document(found))
    else:
        write_csv(stat_rows(found))
    return 0


# ---- text ----


def _text(found: Statistics, name: str, top: int | None) -> Iterator[str]:
    """Yield the lines of the text."""
    yield from _summary(found, name)
    for process in found.processes:
        yield ""
        yield from _process(process, top)
    if found.event_types:
        yield ""
        yield from _types(found)
    if found.objects:
        yield ""
        yield from _objects(found, top)
    if found.uncovered:
        yield ""
        yield "not covered: not all that these modules do is in the trace"
        for item in found.uncovered:
            yield f"  {item.get('module', '?')}"
            yield f"    {item.get('why', '?')}"


def _summary(found: Statistics, name: str) -> Iterator[str]:
    yield cut(name, _WIDTH)
    processes, threads = len(found.processes), found.thread_count
    yield (
        f"  {many(found.events, 'event')} of {many(threads, 'thread')} in "
        f"{many(processes, 'process', 'processes')}, {duration(found.duration_ns)}, "
        f"{size(found.bytes)}"
    )
    facts = [f"level {found.level}"] if found.level else []
    facts += [f"recorded {date(found.start_unix_ns)}"] if found.events else []
    state = "recorder killed" if found.state == "killed" else found.state
    facts += [state] if state and state != "complete" else []
    if found.nptl not in {"", "stock"}:
        yield f"  thread library: {found.nptl}"
    if facts:
        yield f"  {', '.join(facts)}"
    if found.lost:
        causes = ", ".join(f"{cause} {n:,}" for cause, n in found.lost_by_cause.items())
        yield f"  {many(found.lost, 'event')} lost" + (f" ({causes})" if causes else "")
    elif found.state == "recovered":
        yield "  no events counted as lost"
    else:
        yield "  no events lost"
    if found.untraced_processes:
        untraced = many(found.untraced_processes, "process", "processes")
        yield f"  {untraced} ran untraced"
    if found.damage_bytes:
        yield f"  {size(found.damage_bytes)} damaged and left out"


def _process(process: ProcessStat, top: int | None) -> Iterator[str]:
    # One line, whatever a script given as an argument looks like.
    command = " ".join(" ".join(process.cmdline).split()) or process.exe
    head = f"process {process.pid}"
    yield f"{head}  {cut(command, _WIDTH - len(head) - 2)}"
    threads = sorted(process.threads, key=lambda thread: -thread.events)
    # The busiest are shown, in the order in which they began.
    shown = {id(thread) for thread in threads[:top]}
    if shown:
        yield f"  {'thread':>8}  {'name':<20}{'events':>16}{'begins':>15}{'ends':>15}"
    for thread in process.threads:
        if id(thread) in shown:
            begin = "-" if thread.start_ns is None else seconds(thread.start_ns)
            end = "-" if thread.end_ns is None else seconds(thread.end_ns)
            name = cut(thread.name, 20)
            yield f"  {thread.tid:>8}  {name:<20}{thread.events:>16,}{begin:>15}{end:>15}"
    if len(threads) > len(shown):
        rest = sum(thread.events for thread in threads[len(shown) :])
        more = f"{len(threads) - len(shown)} more"
        yield f"  {'':>8}  {more:<20}{rest:>16,}"


def _types(found: Statistics) -> Iterator[str]:
    yield f"{'events by type':<46}{'count':>16}{'share':>9}"
    for name, n in sorted(found.event_types.items(), key=lambda item: -item[1]):
        yield f"  {name:<44}{n:>16,}{100 * n / found.events:>8.1f}%"


def _objects(found: Statistics, top: int | None) -> Iterator[str]:
    shown = found.objects[:top]
    pids = len({process.pid for process in found.processes}) > 1
    table = Table("objects", 46, {"events": 16, "pid": 9} if pids else {"events": 16})
    yield table.head
    for item in shown:
        what = f"{item.kind} {item.name}" if item.name else f"{item.kind} {item.address:#x}"
        yield table.row(what, f"{item.events:,}", str(item.pid))
    if len(found.objects) > len(shown):
        yield f"  {len(found.objects) - len(shown)} more (-n 0 shows all)"
