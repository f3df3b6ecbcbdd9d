"""`ptt hang`: who waits for whom in a process that was never traced."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from nptltrace.cli import traces
from nptltrace.cli.options import duration_ns, write_lines

if TYPE_CHECKING:
    import argparse

SUMMARY = "say who waits for whom in a process that hangs and was never traced"
DESCRIPTION = """\
Looks at a running process from outside: what each thread sleeps in, which mutex, rwlock, condition
or thread it waits for, who has it, and where it was called. Nothing is put into the process and
nothing in it is stopped. Deadlocks, locks whose owners have ended and processes in which nobody is
left to wake anybody are findings, as in `ptt check`; the exit status is 1 if anything was found.
It takes the rights of a debugger: to be the process's own user, or root."""
EXAMPLE = """\
ptt hang 4711
ptt hang --stacks 4711
ptt hang --watch 5s 4711
ptt hang --format json 4711 | jq '.findings[].message'"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("pid", metavar="PID", type=int, help="process to look at")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how to print (default: text)"
    )
    parser.add_argument("--stacks", action="store_true", help="show whole stacks")
    parser.add_argument(
        "--watch", metavar="TIME", type=duration_ns,
        help="look again after this time, and say which threads did not run in between",
    )  # fmt: skip
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print what the threads wait for."""
    from nptltrace.hang.documents import hang_document
    from nptltrace.hang.names import Names, OneProcess
    from nptltrace.hang.picture import look
    from nptltrace.hang.process import Process
    from nptltrace.hang.verdicts import verdicts

    process = Process(args.pid)
    names = Names(traces.open_symbols(args, OneProcess(process)))
    picture = look(process, names)
    unmoved = None
    if args.watch is not None:
        before = {seen.thread.tid: seen.thread for seen in picture.threads}
        time.sleep(args.watch / 1e9)
        picture = look(process, names)
        unmoved = frozenset(
            tid
            for seen in picture.threads
            if (old := before.get(tid := seen.thread.tid)) is not None
            and seen.state != "runnable"
            and old.switches == seen.thread.switches
        )
    found = verdicts(process, picture)
    if args.format == "json":
        import json

        json.dump(hang_document(picture, found, unmoved), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        from nptltrace.cli.output import hang_text

        write_lines(hang_text.lines(picture, found, unmoved, stacks=args.stacks))
    return 1 if found else 0
