"""`ptt record`: runs a program traced."""

from __future__ import annotations

import argparse
from pathlib import Path

from nptltrace._plural import plural
from nptltrace.cli.options import say, size, suggest
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nptltrace.recording.settings.options import RecordOptions
    from nptltrace.recording.viewer_process import Beside

SUMMARY = "run a program traced"
DESCRIPTION = """\
Runs CMD with the tracer loaded and drains its trace buffers into a trace directory while it
runs. Child processes are followed; the recording is over when all of them have ended. The exit
status is that of CMD. The program's own input and output are left alone: all talk is on stderr."""
EXAMPLE = """\
ptt record -o run.ptt -- ./program --its --options
ptt record --level mutex=3,cond=2 -- make -j4
ptt record --filter 'mutex,cond,!COND_SIGNAL' -- ./program
ptt record --ui -- ./program
ptt record --stream-full-policy loop --buffer-budget 256M -- ./server"""

_LEVELS = ("0", "1", "2", "3", "4", "LEVEL_NONE", "LEVEL_IO", "LEVEL_ALL")
_POLICIES = ("flush", "loop", "until-full")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options, and CMD with all that follows it."""
    parser.usage = "%(prog)s [options] [--] CMD [ARG...]"
    add = parser.add_argument
    add(
        "-o", "--output", metavar="DIR", type=Path,
        help="trace directory (default: ptt-<program>-<pid>)",
    )  # fmt: skip
    add("--force", action="store_true", help="replace the trace that is in DIR")
    level = add(
        "-l",
        "--level",
        metavar="SPEC",
        default="2",
        help="0 to 4, DOMAIN=LEVEL,..., or PTT's LEVEL_ names (default: 2)",
    )
    handler = add(
        "--handler",
        metavar="NAME[:ARG,...]",
        default="ring",
        help="where events go: ring, shared, file, text, posix, or the path of one (default: ring)",
    )
    add(
        "--nptl",
        metavar="PATH|auto|stock",
        help="run CMD on the thread library that ptt nptl build made (auto, or where it is) or on "
        "the system's own (default: auto at level 4, else stock)",
    )
    suggest(level, *_LEVELS)
    suggest(handler, "ring", "shared", "file", "text")
    add("--no-children", action="store_true", help="do not follow child processes")
    add("--original", action="store_true", help="run CMD untraced")
    add(
        "--filter",
        metavar="EXPR",
        help="record these events only: items DOMAIN, PREFIX or *SUFFIX of names, with commas; "
        "!ITEM leaves out (default: all of the level)",
    )
    _add_buffers(parser.add_argument_group("buffers and files"))
    add("--ui", action="store_true", help="show the trace in a browser as it comes: see ptt ui")
    add("cmd", metavar="CMD", nargs=argparse.REMAINDER, help="the program, with its arguments")


def _add_buffers(group: argparse._ActionsContainer) -> None:
    add = group.add_argument
    add(
        "--buffer-size", metavar="SIZE", type=size, default=16384,
        help="one buffer, a power of two from 8K to 1M (default: 16K)",
    )  # fmt: skip
    add(
        "--buffer-budget", metavar="SIZE", type=size, default=64 << 20,
        help="all buffers together (default: 64M)",
    )  # fmt: skip
    add(
        "--stream-full-policy",
        choices=_POLICIES,
        default="flush",
        help="drain while running, keep the newest events, or stop when full (default: flush)",
    )
    add(
        "--when-full",
        choices=("wait", "drop"),
        default="wait",
        help="what a thread does that finds no room (default: wait)",
    )
    add(
        "-m", "--max-file-size", metavar="SIZE", type=size, default=0,
        help="go on in a new file before one gets bigger, 64K or more (default: never)",
    )  # fmt: skip
    add(
        "-f",
        "--max-files",
        metavar="N",
        type=int,
        default=0,
        help="keep the last N files of each thread's stream (default: all)",
    )


def _options(args: argparse.Namespace) -> RecordOptions:
    from nptltrace.recording.settings.filters import parse_filter
    from nptltrace.recording.settings.levels import parse_levels
    from nptltrace.recording.settings.options import (
        BufferOptions,
        HandlerChoice,
        Policy,
        RecordOptions,
        WhenFull,
    )

    command = args.cmd[1:] if args.cmd[:1] == ["--"] else args.cmd
    if not command:
        raise UsageError("no program given (see ptt record --help)")
    if args.max_files < 0:
        raise UsageError("--max-files must not be negative")
    return RecordOptions(
        command=tuple(command),
        output=args.output,
        force=args.force,
        levels=parse_levels(args.level),
        filter=None if args.filter is None else parse_filter(args.filter),
        handler=HandlerChoice.parse(args.handler),
        nptl=args.nptl,
        buffers=BufferOptions(
            budget=args.buffer_budget,
            chunk_size=args.buffer_size,
            policy=Policy[args.stream_full_policy.upper().replace("-", "_")],
            when_full=WhenFull[args.when_full.upper()],
            max_file_size=args.max_file_size,
            max_files=args.max_files,
        ),
        children=not args.no_children,
        original=args.original,
        verbosity=args.verbosity,
    )


def run(args: argparse.Namespace) -> int:
    """Record, and return the program's exit status."""
    from nptltrace.recording import recorder

    options = _options(args)
    viewer = _viewer(options) if args.ui else None
    outcome = recorder.run(options, viewer.start if viewer else None)
    if outcome.trace is not None:
        stats = outcome.stats
        if stats.overwritten:
            say(
                args,
                f"flight recorder: {stats.overwritten / 1e6:.1f} MB of older events overwritten",
            )
        if stats.removed:
            were = plural(stats.removed, "event was", "events were")
            say(args, f"{stats.removed} older {were} in files that --max-files removed")
        if stats.stopped:
            say(args, "the buffers filled and recording stopped there (until-full)")
        if stats.lost_processes:
            processes = plural(stats.lost_processes, "process", "processes")
            say(args, f"{stats.lost_processes} {processes} ran untraced: too many at one time")
        say(args, recorder.summary(outcome))
    if viewer is not None:
        viewer.wait(lambda: say(args, "the viewer goes on (interrupt to end it)"))
    return outcome.status


def _viewer(options: RecordOptions) -> Beside:
    """Return what shows the recording.

    Raises:
        UsageError: The trace comes to be read only when the program has ended.
    """
    from nptltrace.recording.viewer_process import Beside

    if options.handler.name not in {"ring", "shared"} or options.original:
        raise UsageError("--ui needs a trace that is written while the program runs")
    return Beside()
