"""`ptt split`: writes one trace per process or thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._dataclasses import replace
from nptltrace._units import plural
from nptltrace.cli import traces
from nptltrace.cli.options import add_trace, say

if TYPE_CHECKING:
    import argparse

    from nptltrace.trace.traceset import Traceset

SUMMARY = "write one trace per process or per thread"
DESCRIPTION = """\
Makes a directory with one trace per process image, named by pid, or one trace per thread, named by
pid and tid. Events do not change: an object that another process initialised is used without the
event of its initialisation. With --from, each new trace starts with the locks that are held and
waited for at that time."""
EXAMPLE = """\
ptt split run.ptt
ptt split --by thread -o threads run.ptt"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_trace(parser)
    parser.add_argument(
        "--by", choices=("process", "thread"), default="process",
        help="one trace per process or per thread (default: process)",
    )  # fmt: skip
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_names(parser)
    traces.add_output(parser, "directory of the new traces (default: TRACE with -split)")


def run(args: argparse.Namespace) -> int:
    """Write the traces."""
    from nptltrace.analysis.cutting import write_cuts
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.copying import default_output
    from nptltrace.trace.traceset import Traceset

    source = Traceset(args.trace)
    warner = traces.Warner(args, source)
    symbols = traces.open_symbols(args, source)
    directory = (
        Path(args.output)
        if args.output
        else default_output(Path(args.trace), "split").with_suffix("")
    )
    common = traces.part(args, source, symbols)
    numbers = traces.selection(args).thread_numbers(source)
    chosen = set(range(len(source.thread_ids)) if numbers is None else numbers)
    parts = _parts(source, args.by, chosen)
    if parts and not directory.is_dir():
        directory.mkdir()
    cuts = {directory / name: replace(common, threads=threads) for name, threads in parts.items()}
    for written in write_cuts(source, cuts, force=args.force):
        events = plural(written.events, "event")
        say(args, f"wrote {written.events} {events} to {written.path}", verbosity=1)
    warner.say()
    if cuts:
        say(args, f"wrote {len(cuts)} {plural(len(cuts), 'trace')} to {directory}")
    say_unmatched(args, source, symbols)
    return 0


def _parts(source: Traceset, by: str, chosen: set[int]) -> dict[str, frozenset[int]]:
    """Return threads by the name of their trace; repeated names get a number.

    Args:
        source: The opened trace.
        by: `process` or `thread`.
        chosen: Numbers of the threads to write, or of some threads of the processes.
    """
    processes = source.processes
    named: list[tuple[str, frozenset[int]]]
    if by == "process":
        of: dict[int, set[int]] = {}
        for number, (process, _) in enumerate(source.thread_ids):
            of.setdefault(process, set()).add(number)
        named = [
            (f"{process.pid}", frozenset(of[number]))
            for number, process in enumerate(processes)
            if not chosen.isdisjoint(of.get(number, ()))
        ]
    else:
        named = [
            (f"{processes[process].pid}-{tid}", frozenset({number}))
            for number, (process, tid) in enumerate(source.thread_ids)
            if number in chosen
        ]
    parts: dict[str, frozenset[int]] = {}
    for name, threads in named:
        unique, again = name, 1
        while f"{unique}.ptt" in parts:
            again += 1
            unique = f"{name}.{again}"
        parts[f"{unique}.ptt"] = threads
    return parts
