"""`ptt recover`: finishes the trace of a killed recorder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.cli.options import say

if TYPE_CHECKING:
    import argparse

SUMMARY = "finish the trace of a recorder that was killed"
DESCRIPTION = """\
Writes the events that are still in the trace buffers to the trace, cuts off a packet that is
incomplete, and removes the buffers. Afterwards the trace has each event that was committed before
the kill, exactly once. Processes that still run continue untraced. DIR is the trace directory, or
the directory of the buffers, /dev/shm/ptt-<uid>-<pid>-..."""
EXAMPLE = """\
ptt recover run.ptt"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the argument."""
    parser.add_argument(
        "directory", metavar="DIR", type=Path, help="trace directory or buffer directory"
    )


def run(args: argparse.Namespace) -> int:
    """Recover the trace, and print its counts."""
    from nptltrace.recording.recorder import Outcome, summary
    from nptltrace.recording.recover import recover

    recovered = recover(args.directory)
    if recovered.remark:
        say(args, recovered.remark)
    if recovered.stats is not None:
        line = summary(Outcome(0, recovered.trace, recovered.stats, recovered.processes))
        say(args, line.replace("recorded", "recovered", 1))
    return 0
