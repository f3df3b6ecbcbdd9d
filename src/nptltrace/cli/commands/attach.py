"""`ptt attach`: records a process that already runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._units import plural
from nptltrace.cli.options import (
    add_black_box,
    add_buffer_budget,
    add_level,
    add_stacks,
    box_events,
    buffer_budget,
    duration_ns,
    refuse_others,
    say,
)
from nptltrace.cli.profiles import add_profile, level_of, profile_of
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from nptltrace.attach.recording import AttachOptions, Recording
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.process import Process

SUMMARY = "record a process that already runs"
DESCRIPTION = """\
Records the process until you interrupt ptt, the process ends, or the time of --for is over. Then
the process goes on as before. You can attach again and again. You need the rights of a debugger:
be the user of the process, or root.

If the process was started with `ptt record -l 0`, its own recorder records it. In any other
process, PTT has a thread of the process load the tracer. PTT stops one thread for about a
millisecond, and no other thread. If PTT does not know that this is safe, it leaves the process
alone, says why in one line, and exits with status 2. PTT records neither calls that threads have
already entered, nor locks that threads already hold."""
EXAMPLE = """\
ptt attach 4711
ptt attach --for 10s -o busy.ptt 4711
ptt attach --level mutex=3 --for 2s 4711
ptt attach --black-box 4711"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("pid", metavar="PID", type=int, help="process to record")
    add(
        "-o", "--output", metavar="DIR", type=Path,
        help="trace directory (default: ptt-<program>-<pid>)",
    )  # fmt: skip
    add("--force", action="store_true", help="replace the trace that is in DIR")
    add(
        "--for", "-d", "--duration", dest="duration", metavar="TIME", type=duration_ns,
        help="record for this time (default: until interrupted)",
    )  # fmt: skip
    add_level(parser)
    add_stacks(parser)
    add_buffer_budget(parser)
    add_profile(parser)
    add_black_box(parser, "the process")
    add(
        "--wait", metavar="TIME", type=duration_ns, default=5_000_000_000,
        help="look this long for a thread that PTT can stop safely (default: 5s)",
    )  # fmt: skip


# The options of `--black-box`: the others are about a trace.
_OF_BOX = frozenset({
    "black_box", "black_box_events", "buffer_budget", "level", "pid", "stacks", "user_stacks",
    "wait",
})  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Record the process."""
    if args.black_box_events is not None and not args.black_box:
        raise UsageError("--black-box-events needs --black-box")
    if args.black_box:
        return _begin_box(args)
    from nptltrace import _paths
    from nptltrace.attach.idle_recorder import control_page_of, record_with_idle_recorder
    from nptltrace.attach.injection import Injection
    from nptltrace.attach.recording import record
    from nptltrace.hang.stack.names import Names, OneProcess
    from nptltrace.hang.targets.process import Process
    from nptltrace.recording.interrupts import Interrupts
    from nptltrace.recording.recorder import summary
    from nptltrace.trace.symbols.lookup import Symbols

    page = control_page_of(args.pid)
    name = _name_of(args.pid)
    options = _options(args, name)
    with Interrupts() as interrupts:
        came: set[int] = set()

        def ended() -> bool:
            came.update(interrupts.forward(None))
            return bool(came)

        if page is not None and options.profile is not None:
            raise UsageError(
                f"process {args.pid} has a recorder with level 0, which writes no profile"
            )
        if page is not None:
            _say_recording(args, name)
            events, trace = record_with_idle_recorder(page, options, ended)
            say(args, f"recorded {events} {plural(events, 'event')} in {trace}")
            return 0
        process = Process(args.pid)

        def began(recording: Recording) -> None:
            _say_recording(args, name)
            stopped = recording.stopped_ns / 1e6
            say(args, f"one thread was stopped for {stopped:.1f} ms", verbosity=1)

        names = Names(Symbols(OneProcess(process)))
        _refuse_box(process, names)
        injection = Injection(process, names, _paths.library(_paths.PRELOAD))
        outcome, recording = record(options, injection, ended, began, interrupts.is_asked_to_end)
    if recording.own_end:
        say(args, f"process {args.pid} ended the recording: {recording.own_end}")
    if options.profile is None:
        say(args, summary(outcome))
    if recording.has_left:
        say(args, f"process {args.pid} calls its C library again; the tracer stays in its memory, "
            "unused", verbosity=1)  # fmt: skip
    return 0


def _begin_box(args: argparse.Namespace) -> int:
    """Let the process keep its newest events, and leave it.

    Raises:
        UsageError: An option is for recordings.
    """
    from nptltrace import _paths
    from nptltrace.attach import black_box
    from nptltrace.attach.idle_recorder import control_page_of
    from nptltrace.attach.injection import Injection
    from nptltrace.hang.stack.names import Names, OneProcess
    from nptltrace.hang.targets.process import Process
    from nptltrace.recording.black_box import handler_arguments
    from nptltrace.recording.settings.levels import parse_levels
    from nptltrace.recording.settings.options import BufferOptions, stacks_of
    from nptltrace.trace.symbols.lookup import Symbols

    refuse_others(args, configure, _OF_BOX, "is for recordings, not for --black-box")
    name = _name_of(args.pid)
    buffers = BufferOptions(
        budget=buffer_budget(args), **stacks_of(args.stacks, user=args.user_stacks)
    )
    arguments = handler_arguments(buffers, box_events(args))
    levels = parse_levels(level_of(args))
    if control_page_of(args.pid) is not None:
        raise UsageError(f"process {args.pid} is being recorded already")
    process = Process(args.pid)
    names = Names(Symbols(OneProcess(process)))
    _refuse_box(process, names)
    injection = Injection(process, names, _paths.library(_paths.PRELOAD))
    calls = black_box.begin(args.pid, injection, levels, arguments, args.wait)
    say(args, f"process {args.pid} ({name}) keeps its newest events from now on: ptt hang "
        f"{args.pid} reads them")  # fmt: skip
    say(args, f"{calls} {plural(calls, 'call')} of its modules lead to the tracer", verbosity=1)
    return 0


def _refuse_box(process: Process, names: Names) -> None:
    """Refuse a process that keeps its newest events: its tracer cannot do anything else."""
    from nptltrace.hang.black_box import find_box

    if find_box(process):
        from nptltrace.hang.black_box.memory import has_box

        if has_box(process, names):
            raise UsageError(
                f"process {process.pid} has a black box already: ptt hang {process.pid} reads it"
            )


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError:
        raise UsageError(f"no process {pid}") from None


def _say_recording(args: argparse.Namespace, name: str) -> None:
    how = "" if args.duration is not None else " (interrupt to let it go)"
    say(args, f"recording process {args.pid} ({name}){how}")


def _options(args: argparse.Namespace, name: str) -> AttachOptions:
    from nptltrace._files.trace_directories import free_name
    from nptltrace.attach.recording import AttachOptions
    from nptltrace.recording.settings.levels import parse_levels
    from nptltrace.recording.settings.options import BufferOptions, stacks_of

    program = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    profile = profile_of(args, program)
    return AttachOptions(
        pid=args.pid,
        output=args.output or free_name(f"ptt-{program}-{args.pid}", force=args.force),
        levels=parse_levels(level_of(args)),
        buffers=BufferOptions(
            budget=buffer_budget(args),
            **stacks_of(args.stacks, user=args.user_stacks),
        ),
        profile=profile,
        duration_ns=args.duration,
        patience_ns=args.wait,
        force=args.force,
        verbosity=args.verbosity,
    )
