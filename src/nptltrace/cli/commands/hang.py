"""`ptt hang`: shows which threads of an untraced process wait for each other."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from nptltrace.cli import traces
from nptltrace.cli.options import duration_ns, say, write_lines
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from nptltrace.hang.picture import Picture
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.core import Core
    from nptltrace.hang.targets.process import Process
    from nptltrace.hang.verdicts import Verdict

SUMMARY = "find out why a process hangs: who waits for whom, without a recording"
DESCRIPTION = """\
Looks at a running process from outside, or at a core file. For each thread, it prints the mutex,
rwlock, condition or thread that the thread waits for, the holder, and the call site. PTT puts
nothing into the process, and stops no thread unless you pass --stop. As in `ptt check`, deadlocks,
locks of threads that ended, lost signals, and processes that nobody can wake are findings. The exit
status is 1 if anything was found. You need the rights of a debugger: be the user of the process, or
root. `ptt dump` is another name of this command."""
EXAMPLE = """\
ptt hang 4711
ptt hang --stacks 4711
ptt hang --watch 5s 4711
ptt hang --exe build/server core.4711
ptt hang --format json 4711 | jq '.findings[].message'"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "target",
        metavar="PID|CORE",
        help="process id or core file (a number is a process)",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    parser.add_argument("--stacks", action="store_true", help="print whole call stacks")
    parser.add_argument(
        "--watch", metavar="TIME", type=duration_ns,
        help="look again after this time, and report the threads that did not run in between",
    )  # fmt: skip
    parser.add_argument(
        "--stop", action="store_true",
        help="stop running threads during the look, to see all threads at the same moment",
    )  # fmt: skip
    parser.add_argument(
        "--exe", metavar="PROGRAM", help="program of the core file, if it is no longer at its path"
    )
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print the waits of all threads, and the findings."""
    from nptltrace.hang.documents import hang_document
    from nptltrace.hang.stack.names import Names, OneProcess

    process = _target(args)
    source = OneProcess(process)
    names = Names(traces.open_symbols(args, source))
    picture, unmoved, findings = _seen(args, process, names)
    for remark in (*process.remarks, *dict.fromkeys(source.notes)):
        say(args, f"warning: {remark}")
    if args.format == "json":
        import json

        json.dump(hang_document(picture, findings, unmoved), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        from nptltrace.cli.output.text import hang_text
        from nptltrace.hang.targets.process import Process

        stoppable = isinstance(process, Process) and not args.stop
        write_lines(
            hang_text.lines(picture, findings, unmoved, stacks=args.stacks, stoppable=stoppable)
        )
    return 1 if findings else 0


def _target(args: argparse.Namespace) -> Process | Core:
    """Return the process or the core file."""
    if args.target.isascii() and args.target.isdigit():
        from nptltrace.hang.targets.process import Process

        if args.exe:
            raise UsageError(
                "--exe works with core files only: PTT finds the program of a process by itself"
            )
        return Process(int(args.target))
    from pathlib import Path

    from nptltrace.hang.targets.core import Core

    if args.stop or args.watch is not None:
        raise UsageError("--stop and --watch work with processes, not with core files")
    return Core(Path(args.target), Path(args.exe) if args.exe else None)


def _seen(
    args: argparse.Namespace, process: Process | Core, names: Names
) -> tuple[Picture, frozenset[int] | None, list[Verdict]]:
    """Look once, or again with --watch and --stop.

    Returns:
        The last picture, the threads that did not run during --watch, and the findings.
    """
    from nptltrace.hang.picture import look
    from nptltrace.hang.targets.process import Process
    from nptltrace.hang.verdicts import verdicts

    picture = look(process, names)
    before = {seen.thread.tid: seen.thread for seen in picture.threads}
    if args.watch is not None:
        time.sleep(args.watch / 1e9)
        picture = look(process, names)
    findings = verdicts(process, picture, names)
    if args.stop and isinstance(process, Process):
        from nptltrace.hang.targets.stop import Stopped

        # The names from the first look make this look short.
        with Stopped(process):
            picture = look(process, names)
            findings = verdicts(process, picture, names)
    if args.watch is None:
        return picture, None, findings
    unmoved = frozenset(
        tid
        for seen in picture.threads
        if (old := before.get(tid := seen.thread.tid)) is not None
        and seen.state != "runnable"
        and old.turns == seen.thread.turns
    )
    return picture, unmoved, findings
