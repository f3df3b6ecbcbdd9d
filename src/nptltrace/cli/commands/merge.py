"""`ptt merge`: several traces into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._plural import plural
from nptltrace.cli import traces
from nptltrace.cli.options import add_traces, say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

SUMMARY = "write several traces as one"
DESCRIPTION = """\
Traces of one machine, recorded since it was started, share a clock and are put together as they
are. Those by different clocks of one machine are aligned by readings that the recorder took of
both, those of different machines by the time of day; how far that can be trusted is said. The new
trace has the clock that ticks fastest."""
EXAMPLE = "ptt merge -o both.ptt server.ptt client.ptt"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_traces(parser)
    traces.add_output(parser, "the new trace", required=True)


def run(args: argparse.Namespace) -> int:
    """Write the trace."""
    from nptltrace.trace.copying import Part, write_trace
    from nptltrace.trace.source import Source

    if len(args.traces) < 2:  # noqa: PLR2004 -- as the word says
        raise UsageError("merge needs two traces or more")
    source = Source(args.traces)
    warner = traces.Warner(args, source)
    written = write_trace(source, Path(args.output), Part(), force=args.force)
    warner.say()
    events = f"{written.events} {plural(written.events, 'event')}"
    say(args, f"wrote {events} of {len(args.traces)} traces to {written.path}")
    return 0
