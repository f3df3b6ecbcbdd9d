"""`ptt merge`: joins several traces into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._dataclasses import replace
from nptltrace._units import plural
from nptltrace.cli import traces
from nptltrace.cli.options import add_traces, say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

SUMMARY = "join several traces into one"
DESCRIPTION = """\
Traces from one boot of one machine share a clock, and are joined as they are. Traces with different
clocks of one machine are aligned by readings of both clocks. Traces of different machines are
aligned by the time of day; ptt prints how exact that is. The new trace uses the clock with the
highest frequency."""
EXAMPLE = """\
ptt merge -o both.ptt server.ptt client.ptt
ptt merge --from 10s --to 12s -o stall.ptt server.ptt client.ptt"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_traces(parser)
    traces.add_output(parser, "directory of the new trace", required=True)
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Write the trace."""
    from nptltrace.analysis.cutting import write_cut
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.traceset import Traceset

    if len(args.traces) < 2:  # noqa: PLR2004 -- a merge needs two
        raise UsageError("merge needs two traces or more")
    source = Traceset(*args.traces)
    symbols = traces.open_symbols(args, source)
    warner = traces.Warner(args, source)
    numbers = traces.selection(args).thread_numbers(source)
    chosen = None if numbers is None else frozenset(numbers)
    part = replace(traces.part(args, source, symbols), threads=chosen)
    written = write_cut(source, Path(args.output), part, force=args.force)
    warner.say()
    say_unmatched(args, source, symbols)
    events = f"{written.events} {plural(written.events, 'event')}"
    say(args, f"wrote {events} of {len(args.traces)} traces to {written.path}")
    return 0
