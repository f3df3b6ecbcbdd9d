"""`ptt snapshot`: writes what a flight recorder has now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.cli.options import say

if TYPE_CHECKING:
    import argparse

SUMMARY = "save the last moments of a recording that goes on"
DESCRIPTION = """\
Writes the newest events of a flight recorder to a trace of their own. The program does not stop,
and the recording goes on. PID is the recorder, which is `ptt record --stream-full-policy loop`, or
a process that it records. The trace has all events up to the request, unless newer events have
overwritten them."""
EXAMPLE = """\
ptt snapshot 4711
ptt snapshot -o slow.ptt 4711"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options and arguments."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path,
        help="trace directory of the snapshot (default: beside the trace of the recording, with "
        "the next free number)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace the trace that is in DIR")
    parser.add_argument("pid", metavar="PID", type=int, help="recorded process, or the recorder")


def run(args: argparse.Namespace) -> int:
    """Ask for a snapshot."""
    from nptltrace.errors import UsageError
    from nptltrace.recording.snapshots.requests import ask

    if args.force and args.output is None:
        raise UsageError("--force needs --output")
    trace, contents = ask(args.pid, args.output, force=args.force)
    here = Path.cwd()
    shown = trace.relative_to(here) if trace.is_relative_to(here) else trace
    say(args, f"snapshot {shown}: {contents}")
    return 0
