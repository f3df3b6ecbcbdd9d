"""`ptt split`: one trace a process or thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._plural import plural
from nptltrace.cli import traces
from nptltrace.cli.options import add_trace, say

if TYPE_CHECKING:
    import argparse

    from nptltrace.trace.copying import Part
    from nptltrace.trace.source import Source

SUMMARY = "write one trace a process or thread"
DESCRIPTION = """\
Makes a directory with a trace for each process image, named by pid, or for each thread, named by
pid and tid. Events stay what they are: an object that another process initialised is used without
that event in its own trace."""
EXAMPLE = """\
ptt split run.ptt
ptt split --by thread -o threads run.ptt"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_trace(parser)
    parser.add_argument(
        "--by", choices=("process", "thread"), default="process", help="what gets a trace each"
    )
    traces.add_filters(parser, events=False, objects=False)
    traces.add_output(parser, "the directory of the new traces (default: TRACE with -split)")


def run(args: argparse.Namespace) -> int:
    """Write the traces."""
    from nptltrace.cli.unmatched import say_unmatched_threads
    from nptltrace.trace.copying import default_output, write_trace
    from nptltrace.trace.source import Source

    source = Source([args.trace])
    warner = traces.Warner(args, source)
    directory = (
        Path(args.output)
        if args.output
        else default_output(Path(args.trace), "split").with_suffix("")
    )
    made = 0
    for name, part in _parts(source, args.by, _chosen(args, source)).items():
        written = write_trace(source, directory / name, part, force=args.force)
        events = plural(written.events, "event")
        say(args, f"wrote {written.events} {events} to {written.path}", verbosity=1)
        made += 1
    warner.say()
    if made:
        say(args, f"wrote {made} {plural(made, 'trace')} to {directory}")
    else:
        say_unmatched_threads(args, source)
    return 0


def _chosen(args: argparse.Namespace, source: Source) -> set[int]:
    """Return the numbers of the threads that the options choose."""
    numbers = traces.selection(args).thread_numbers(source)
    return set(range(len(source.threads())) if numbers is None else numbers)


def _parts(source: Source, by: str, chosen: set[int]) -> dict[str, Part]:
    """Return the parts by the name of their trace; names are told apart by a number.

    Args:
        source: The opened trace.
        by: `process` or `thread`.
        chosen: Numbers of the threads to write, or of some threads of the processes.
    """
    from nptltrace.trace.copying import Part

    processes = source.processes()
    named: list[tuple[str, Part]]
    if by == "process":
        busy = {process for at, (process, _) in enumerate(source.threads()) if at in chosen}
        named = [
            (f"{process.pid}", Part(process=number))
            for number, process in enumerate(processes)
            if number in busy
        ]
    else:
        named = [
            (f"{processes[process].pid}-{tid}", Part(thread=number))
            for number, (process, tid) in enumerate(source.threads())
            if number in chosen
        ]
    parts: dict[str, Part] = {}
    for name, part in named:
        unique, again = name, 1
        while f"{unique}.ptt" in parts:
            again += 1
            unique = f"{name}.{again}"
        parts[f"{unique}.ptt"] = part
    return parts
