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
    traces.add_output(parser, "the directory of the new traces (default: TRACE with -split)")


def run(args: argparse.Namespace) -> int:
    """Write the traces."""
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
    for name, part in _parts(source, args.by).items():
        written = write_trace(source, directory / name, part, force=args.force)
        events = plural(written.events, "event")
        say(args, f"wrote {written.events} {events} to {written.path}", verbosity=1)
        made += 1
    warner.say()
    say(args, f"wrote {made} {plural(made, 'trace')} to {directory}")
    return 0


def _parts(source: Source, by: str) -> dict[str, Part]:
    """Return the parts by the name of their trace; names are told apart by a number."""
    from nptltrace.trace.copying import Part

    processes = source.processes()
    named: list[tuple[str, Part]]
    if by == "process":
        busy = {process for process, _ in source.threads()}
        named = [
            (f"{process.pid}", Part(process=number))
            for number, process in enumerate(processes)
            if number in busy
        ]
    else:
        named = [
            (f"{processes[process].pid}-{tid}", Part(thread=number))
            for number, (process, tid) in enumerate(source.threads())
        ]
    parts: dict[str, Part] = {}
    for name, part in named:
        unique, again = name, 1
        while f"{unique}.ptt" in parts:
            again += 1
            unique = f"{name}.{again}"
        parts[f"{unique}.ptt"] = part
    return parts
