"""`ptt recover`: finishes the traces of killed recorders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.cli.options import say, say_error
from nptltrace.errors import PttError, UsageError, one_line

if TYPE_CHECKING:
    import argparse

    from nptltrace.recording.recover import Recovered

SUMMARY = "finish the trace after ptt record was killed"
DESCRIPTION = """\
Moves the events that are still in the buffers to the trace, cuts off a packet that is incomplete,
and removes the buffers. Afterwards the trace has each event that a thread had finished writing,
exactly once. Processes that still run continue untraced. DIR is the trace directory, or the
directory of the buffers, /dev/shm/ptt-<uid>-<pid>-... With --all, PTT finds all of them."""
EXAMPLE = """\
ptt recover run.ptt
ptt recover --all
ptt recover --all --remove"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options and the argument."""
    parser.add_argument(
        "directory", metavar="DIR", type=Path, nargs="?", help="trace directory or buffer directory"
    )
    parser.add_argument(
        "--all", action="store_true", help="finish all your recordings that were killed"
    )
    parser.add_argument(
        "--remove", action="store_true",
        help="remove each trace that had to be finished, together with its buffers",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Recover traces, and print their counts."""
    from nptltrace.recording.recover import Recovered, recover, recover_all

    if args.all is (args.directory is not None):
        raise UsageError("give either DIR or --all")
    if not args.all:
        _finish(args, recover(args.directory))
        return 0
    status, found = 0, False
    for trace, result in recover_all():
        found = True
        try:
            if isinstance(result, Recovered):
                _finish(args, result)
                continue
            error = PttError(f"{trace} stays as it is: {one_line(result)}")
        except PttError as failure:
            error = failure
        say_error(error)
        status = UsageError.exit_status
    if not found:
        say(args, "none of your recordings was killed")
    return status


def _finish(args: argparse.Namespace, recovered: Recovered) -> None:
    """Say what was recovered, and remove the trace if the user wants that."""
    from nptltrace.recording.recorder import Outcome, summary
    from nptltrace.recording.recover import remove

    if recovered.remark:
        say(args, recovered.remark)
    if args.remove:
        if remove(recovered):
            say(args, f"removed {recovered.trace}")
    elif recovered.stats is not None:
        line = summary(Outcome(0, recovered.trace, recovered.stats, recovered.processes))
        say(args, line.replace("recorded", "recovered", 1))
