"""`ptt hang`: shows which threads of an untraced process wait for each other."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._units import plural
from nptltrace.cli import traces
from nptltrace.cli.options import duration_ns, say, write_lines
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from nptltrace.hang.black_box.memory import Box
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
locks of threads that ended, lost signals, and processes that nobody can wake are findings. If the
process has a black box (see `ptt record --black-box`), PTT also prints who took each lock, when and
where. The exit status is 1 if anything was found. You need the rights of a debugger: be the user of
the process, or root. `ptt dump` is another name of this command."""
EXAMPLE = """\
ptt hang 4711
ptt hang --stacks 4711
ptt hang --watch 5s 4711
ptt hang --exe build/server core.4711
ptt hang --save last.ptt 4711
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
        "--save", metavar="TRACE", type=Path,
        help="write the black box of the process as a trace",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace the trace that is in TRACE")
    parser.add_argument(
        "--exe", metavar="PROGRAM", help="program of the core file, if it is no longer at its path"
    )
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print the waits of all threads, and the findings."""
    from nptltrace.hang.documents import hang_document
    from nptltrace.hang.stack.names import Names, OneProcess

    if args.force and args.save is None:
        raise UsageError("--force needs --save")
    process = _target(args)
    source = OneProcess(process)
    names = Names(traces.open_symbols(args, source))
    seen = _seen(args, process, names)
    for remark in (*process.remarks, *dict.fromkeys(source.notes)):
        say(args, f"warning: {remark}")
    if args.format == "json":
        import json

        json.dump(hang_document(seen.picture, seen.findings, seen.unmoved), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        from nptltrace.cli.output.text import hang_text
        from nptltrace.hang.targets.process import Process

        runs = isinstance(process, Process)
        write_lines(
            hang_text.lines(
                seen.picture, seen.findings, seen.unmoved,
                stacks=args.stacks, stoppable=runs and not args.stop,
                history=args.verbosity > 0, runs=runs,
            )
        )  # fmt: skip
    return 1 if seen.findings else 0


def _target(args: argparse.Namespace) -> Process | Core:
    """Return the process or the core file."""
    if args.target.isascii() and args.target.isdigit():
        from nptltrace.hang.targets.process import Process

        if args.exe:
            raise UsageError(
                "--exe works with core files only: PTT finds the program of a process by itself"
            )
        return Process(int(args.target))
    from nptltrace.hang.targets.core import Core

    if args.stop or args.watch is not None:
        raise UsageError("--stop and --watch work with processes, not with core files")
    return Core(Path(args.target), Path(args.exe) if args.exe else None)


class _Seen(NamedTuple):
    """The last picture, the findings, and the threads that did not run during --watch."""

    picture: Picture
    findings: list[Verdict]
    unmoved: frozenset[int] | None


def _seen(args: argparse.Namespace, process: Process | Core, names: Names) -> _Seen:
    """Look once, or again with --watch and --stop."""
    from nptltrace.hang.picture import look
    from nptltrace.hang.targets.process import Process
    from nptltrace.hang.verdicts import verdicts

    picture = look(process, names)
    before = {seen.thread.tid: seen.thread for seen in picture.threads}
    if args.watch is not None:
        time.sleep(args.watch / 1e9)
        picture = look(process, names)
    stopped: AbstractContextManager[object] = nullcontext()
    if args.stop and isinstance(process, Process):
        from nptltrace.hang.targets.stop import Stopped

        stopped = Stopped(process)
    with stopped:
        if args.stop:
            # The names from the first look make this look short.
            picture = look(process, names)
        # After the look: what a thread held then, and a thread that has not run since, holds still.
        picture = _with_box(args, process, _box(args, process, names), picture)
        findings = verdicts(process, picture, names)
    if args.watch is None:
        return _Seen(picture, findings, None)
    unmoved = frozenset(
        tid
        for seen in picture.threads
        if (old := before.get(tid := seen.thread.tid)) is not None
        and seen.state != "runnable"
        and old.turns == seen.thread.turns
    )
    return _Seen(picture, findings, unmoved)


def _box(args: argparse.Namespace, process: Process | Core, names: Names) -> Box | str:
    """Return the black box of a process, or the reason that there is none to read."""
    from nptltrace.hang.black_box import find_box

    if not find_box(process):
        box: Box | str = ""
    else:
        from nptltrace.hang.black_box.memory import DamagedBox, read_box

        try:
            box = read_box(process, names) or ""
        except DamagedBox as error:
            box = f"damaged black box: {error}"
    if isinstance(box, str) and args.save is not None:
        raise UsageError(f"{process.title}: {box or 'it has no black box'}; nothing was saved")
    return box


def _with_box(
    args: argparse.Namespace, process: Process | Core, box: Box | str, picture: Picture
) -> Picture:
    """Return a picture with what the black box tells; also write the box to a trace with --save."""
    if isinstance(box, str):
        if box:
            say(args, f"warning: {box}; nothing of it is used")
        return picture._replace(black_box="damaged") if box else picture
    from nptltrace.hang.black_box.story import tell, with_story

    for remark in box.remarks:
        say(args, f"warning: {remark}")
    if args.save is not None:
        from nptltrace.hang.black_box.saved import save

        events = save(box, process, args.save, force=args.force).events
        say(args, f"saved {events} {plural(events, 'event')} in {args.save}")
    try:
        story = tell(box, process, partial(traces.open_symbols, args), args.save)
    except PttError as error:
        say(args, f"warning: {error}")
        return picture._replace(black_box="unread")
    return with_story(picture, story)
