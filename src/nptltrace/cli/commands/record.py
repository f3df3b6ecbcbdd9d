"""`ptt record`: runs a program traced."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from nptltrace._units import duration, plural
from nptltrace.cli.options import (
    add_black_box,
    add_buffer_budget,
    add_level,
    add_stacks,
    box_events,
    buffer_budget,
    duration_ns,
    program_words,
    refuse_others,
    say,
    size,
    suggest,
)
from nptltrace.cli.profiles import add_profile, level_of, profile_of
from nptltrace.errors import PttError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace._binding.libpttcollect import Stats
    from nptltrace.recording.settings.filters import EventFilter
    from nptltrace.recording.settings.locks import Locks
    from nptltrace.recording.settings.options import RecordOptions
    from nptltrace.recording.viewer_process import Beside

SUMMARY = "run a program and record its threads and locks"
DESCRIPTION = """\
Runs CMD, and records in a trace directory which locks its threads take, and what they wait for.
Then read the trace with `ptt report`, `ptt check` or `ptt ui`. PTT follows child processes, and the
recording ends when all processes have ended. The exit status is the exit status of CMD. The input
and output of the program do not change: PTT prints its messages on stderr. A script *.py that is
not executable, or names no interpreter, runs with ptt's Python."""
EXAMPLE = """\
ptt record -o run.ptt -- ./program --its --options
ptt record script.py --its --options
ptt record --level mutex=3,cond=2 -- make -j4
ptt record --delay 10s --duration 60s -- ./server
ptt record -p 4711 --duration 10s
ptt record --black-box -- ./server
ptt record --profile -o profiles -- ./server
ptt record --filter 'mutex,cond,!COND_SIGNAL' -- ./program
ptt record --ui -- ./program
ptt record --stream-full-policy loop --buffer-budget 256M -- ./server
ptt record --stream-full-policy loop --snapshot-on 'wait>50ms' -- ./server"""

_SCHED = ("auto", "perf", "none")
_POLICIES = ("flush", "loop", "until-full")

# Names may delay the end of a recording by this share of its duration, within these limits in s.
_NAMING, _NAMING_LEAST, _NAMING_MOST = 0.05, 0.5, 10.0
# There is no message about files that are older than a week: they are installed, not built by the
# user. An example is an interpreter in a home directory.
_OLD_S = 7 * 86400


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options, and CMD with its arguments."""
    parser.usage = "%(prog)s [options] [--] CMD [ARG...]\n       %(prog)s [options] -p PID"
    add = parser.add_argument
    add(
        "-o", "--output", metavar="DIR", type=Path,
        help="trace directory (default: ptt-<program>-<pid>)",
    )  # fmt: skip
    add("--force", action="store_true", help="replace the trace that is in DIR")
    _add_span(parser)
    add_level(parser)
    handler = add(
        "--handler", metavar="NAME[:ARG,...]", default="ring",
        help="where events go: ring, shared, file, text, posix, or the path of a handler "
        "(default: ring)",
    )  # fmt: skip
    suggest(handler, "ring", "shared", "file", "text")
    add(
        "--nptl", metavar="PATH|auto|stock",
        help="run CMD on the thread library that ptt nptl build made (auto, or its path), or on "
        "the system's library (stock; default: auto at level 4, else stock)",
    )  # fmt: skip
    add("--fleet", metavar="STORE", help="add the run to a store of ptt fleet when the run ends")
    add(
        "--label", metavar="NAME=VALUE", action="append",
        help="with --fleet: a label of the run for comparisons; repeatable",
    )  # fmt: skip
    add("--no-children", action="store_true", help="do not follow child processes")
    add("--original", action="store_true", help="run CMD untraced")
    add(
        "--locks", metavar="FILE", type=Path,
        help="record the program's own lock functions, which FILE describes in the format of "
        "locks.toml",
    )  # fmt: skip
    add(
        "--filter", metavar="EXPR",
        help="record only these events: DOMAIN, PREFIX or *SUFFIX of event names, separated by "
        "commas; !ITEM excludes events (default: all events of the level)",
    )  # fmt: skip
    add_stacks(parser)
    add(
        "--sched", choices=_SCHED,
        help="auto: record how long threads had no processor, if the kernel tells; perf: also "
        "record each context switch, if perf_event_paranoid is 2 or less; none: neither (default: "
        "$PTT_SCHED, else auto)",
    )  # fmt: skip
    add(
        "--python", choices=("auto", "off"), default="auto",
        help="auto: show Python functions in call stacks instead of interpreter frames "
        "(default: auto)",
    )  # fmt: skip
    add(
        "--no-java", dest="java", action="store_false",
        help="do not load the agent that records waits for monitors and locks in Java virtual "
        "machines",
    )  # fmt: skip
    add(
        "--no-bundle", dest="bundle", action="store_false",
        help="do not keep the names of functions, lines and variables in the trace; you need the "
        "names if you rebuild the program before you read the trace; same as $PTT_BUNDLE=none",
    )  # fmt: skip
    _add_buffers(parser.add_argument_group("buffers and files"))
    add(
        "--ui", action="store_true",
        help="show the trace in a browser during the recording: see ptt ui",
    )  # fmt: skip
    add_profile(parser)
    box = parser.add_argument_group("black box")
    add_black_box(box, "CMD")
    add("cmd", metavar="CMD", nargs=argparse.REMAINDER, help="the program, with its arguments")


def _add_span(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "-p", "--pid", metavar="PID", type=int,
        help="record this process, which already runs: same as ptt attach PID",
    )  # fmt: skip
    add(
        "-d", "--duration", metavar="TIME", type=duration_ns,
        help="record for this time (default: until CMD ends); CMD goes on without being recorded",
    )  # fmt: skip
    add(
        "--delay", metavar="TIME", type=duration_ns, default=0,
        help="begin to record after this time (default: 0)",
    )  # fmt: skip


def _add_buffers(group: argparse._ActionsContainer) -> None:
    add = group.add_argument
    add(
        "--buffer-size", metavar="SIZE", type=size, default=16384,
        help="size of one buffer, a power of two from 8K to 1M (default: 16K)",
    )  # fmt: skip
    add_buffer_budget(group)
    add(
        "--stream-full-policy", choices=_POLICIES, default="flush",
        help="flush: write events to disk all the time; loop: keep the newest events; until-full: "
        "stop when the buffers are full (default: flush)",
    )  # fmt: skip
    add(
        "--snapshot-on", metavar="WHAT", type=_trigger, action="append", default=[],
        help="with loop: save a snapshot of the buffers as a trace of its own when WHAT happens, "
        "and go on recording; WHAT is wait>TIME (a thread has waited for a lock for TIME), "
        "user:TEXT (an event of the program begins with TEXT), finding (ptt check finds something "
        "new) or SIGUSR1 (the recorder gets this signal); repeatable",
    )  # fmt: skip
    add(
        "--max-snapshots", metavar="N", type=int,
        help="with --snapshot-on: write at most N snapshots (default: 10)",
    )  # fmt: skip
    add(
        "--when-full", choices=("wait", "drop"), default="wait",
        help="when the buffers are full: the thread waits, or drops the event (default: wait)",
    )  # fmt: skip
    add(
        "--compact", action="store_true",
        help="write a smaller trace that only PTT reads; ptt export --format ctf makes a plain "
        "trace of it for other programs",
    )  # fmt: skip
    add(
        "-m", "--max-file-size", metavar="SIZE", type=size, default=0,
        help="start a new file before a file gets larger than SIZE, 64K or more (default: never)",
    )  # fmt: skip
    add(
        "-f", "--max-files", metavar="N", type=int, default=0,
        help="keep the last N files of each thread (default: all)",
    )  # fmt: skip


def _trigger(text: str) -> tuple[str, str | int]:
    """Parse a value of `--snapshot-on`."""
    kind, _, name = text.partition(":")
    if text in {"finding", "SIGUSR1"}:
        return text, ""
    if kind == "user" and name and "\0" not in name:
        return kind, name
    if text.startswith("wait>"):
        wait_ns = duration_ns(text.removeprefix("wait>"))
        if wait_ns > 0:
            return "wait", wait_ns
    raise argparse.ArgumentTypeError(f"{text!r} is not finding, wait>TIME, user:TEXT or SIGUSR1")


def _options(args: argparse.Namespace) -> RecordOptions:
    from nptltrace.recording.launch import with_interpreter
    from nptltrace.recording.settings.levels import parse_levels
    from nptltrace.recording.settings.options import (
        BufferOptions,
        HandlerChoice,
        Policy,
        RecordOptions,
        WhenFull,
        stacks_of,
    )
    from nptltrace.recording.settings.triggers import Triggers

    command = program_words(args)
    if not command:
        raise UsageError("no program given (see ptt record --help)")
    if args.max_files < 0:
        raise UsageError("--max-files must not be negative")
    sched = args.sched or os.environ.get("PTT_SCHED") or ("none" if args.profile else "auto")
    if sched not in _SCHED:
        raise UsageError(f"$PTT_SCHED must be auto, perf or none, not {sched!r}")
    return RecordOptions(
        command=with_interpreter(command),
        output=args.output,
        force=args.force,
        levels=parse_levels(level_of(args)),
        delay_ns=args.delay,
        duration_ns=args.duration,
        filter=None if args.filter is None else _filter(args.filter),
        handler=HandlerChoice.parse(args.handler),
        nptl=args.nptl,
        locks=None if args.locks is None else _locks(args.locks),
        buffers=BufferOptions(
            budget=buffer_budget(args),
            chunk_size=args.buffer_size,
            policy=Policy[args.stream_full_policy.upper().replace("-", "_")],
            when_full=WhenFull[args.when_full.upper()],
            max_file_size=args.max_file_size,
            max_files=args.max_files,
            **stacks_of(args.stacks, user=args.user_stacks),
            sched=sched != "none",
            switches=sched == "perf",
            python=args.python == "auto",
            compact=args.compact,
        ),
        triggers=Triggers.of(args.snapshot_on, args.max_snapshots),
        profile=profile_of(args, Path(command[0]).name),
        children=not args.no_children,
        java=args.java,
        original=args.original,
        verbosity=args.verbosity,
    )


def _filter(expression: str) -> EventFilter:
    from nptltrace.recording.settings.filters import parse_filter

    return parse_filter(expression)


def _locks(path: Path) -> Locks:
    from nptltrace.catalog import LOCK_TYPES
    from nptltrace.recording.settings.locks import read_locks

    return read_locks(path, LOCK_TYPES)


def run(args: argparse.Namespace) -> int:
    """Record, and return the program's exit status."""
    if args.black_box_events is not None and not args.black_box:
        raise UsageError("--black-box-events needs --black-box")
    if args.pid is not None:
        return _attach(args)
    if args.black_box:
        return _run_with_box(args)
    if args.profile:
        return _run_with_profile(args)
    from nptltrace.recording import recorder

    options = _options(args)
    labels = _labels(args)
    viewer = _viewer(options) if args.ui else None
    began = time.monotonic()
    outcome = recorder.run(options, viewer.start if viewer else None)
    if outcome.trace is not None:
        stats = outcome.stats
        for remark in _remarks(stats):
            say(args, remark)
        if args.bundle and os.environ.get("PTT_BUNDLE") != "none":
            _keep_names(args, outcome.trace, time.monotonic() - began)
        say(args, recorder.summary(outcome))
        if args.fleet is not None:
            say(args, _added(args.fleet, outcome.trace, labels))
    if viewer is not None:
        viewer.wait(lambda: say(args, "the viewer goes on (interrupt to end it)"))
    return outcome.status


# The options of a program with a black box: the others are about a recorder or its trace.
_OF_BOX = frozenset({
    "black_box", "black_box_events", "buffer_budget", "cmd", "level", "locks", "no_children",
    "stacks", "user_stacks",
})  # fmt: skip


def _run_with_box(args: argparse.Namespace) -> int:
    """Run the program with a black box in place of ptt; returns only by an error.

    Raises:
        UsageError: An option is for recordings with a recorder.
    """
    from nptltrace.recording import black_box

    refuse_others(args, configure, _OF_BOX, "is for recordings, not for --black-box")
    black_box.run(_options(args), box_events(args))


# The options that make no sense with `--profile`: they are about the trace.
_NOT_OF_PROFILE = frozenset({
    "bundle", "compact", "fleet", "force", "handler", "label", "max_file_size", "max_files",
    "original", "snapshot_on", "stream_full_policy", "ui",
})  # fmt: skip


def _run_with_profile(args: argparse.Namespace) -> int:
    """Run the program, and write a profile in place of a trace.

    Raises:
        UsageError: An option is about the trace.
    """
    from nptltrace.recording import recorder

    allowed = vars(args).keys() - _NOT_OF_PROFILE
    refuse_others(args, configure, allowed, "is about the trace, and --profile writes none")
    outcome = recorder.run(_options(args))
    for remark in _remarks(outcome.stats):
        say(args, remark)
    return outcome.status


def _attach(args: argparse.Namespace) -> int:
    """Record a process that already runs.

    Raises:
        UsageError: An option is for programs that `ptt` starts.
    """
    from nptltrace.cli.commands import attach

    if args.cmd:
        raise UsageError("give --pid or a program, not both")
    theirs = argparse.ArgumentParser(add_help=False)
    attach.configure(theirs)
    both = vars(theirs.parse_args([str(args.pid)]))
    allowed = {"cmd", "delay", *both}
    refuse_others(args, configure, allowed, "is for programs that ptt starts, not --pid")
    if args.delay:
        say(args, f"waiting for {duration(args.delay)}")
        time.sleep(args.delay / 1e9)
    return attach.run(argparse.Namespace(**{**both, **vars(args)}))


def _remarks(stats: Stats) -> Iterator[str]:
    """Yield messages about events and processes that are not in the trace."""
    if stats.overwritten:
        yield f"flight recorder: {stats.overwritten / 1e6:.1f} MB of older events overwritten"
    if stats.removed:
        were = plural(stats.removed, "event was", "events were")
        yield f"{stats.removed} older {were} in files that --max-files removed"
    if stats.stopped:
        yield "the buffers filled and recording stopped there (until-full)"
    if stats.lost_processes:
        processes = plural(stats.lost_processes, "process", "processes")
        yield f"{stats.lost_processes} {processes} ran untraced: too many at one time"
    if stats.unjoined:
        processes = plural(stats.unjoined, "process", "processes")
        yield f"{stats.unjoined} {processes} ran untraced: they could not join the recording"
    if stats.lost_real_time:
        were = plural(stats.lost_real_time, "event was", "events were")
        yield (
            f"{stats.lost_real_time} {were} lost because threads of a real-time policy "
            "do not wait for room: a larger --buffer-budget has more"
        )
    if stats.lost_stalled:
        were = plural(stats.lost_stalled, "event was", "events were")
        yield (
            f"{stats.lost_stalled} {were} lost because the recorder stood still, "
            "and threads do not wait for it for more than 20 s"
        )


def _keep_names(args: argparse.Namespace, trace: Path, elapsed_s: float) -> None:
    """Put the names of the program's own files into its trace, before the program is rebuilt."""
    from nptltrace.trace.bundling.own_files import has_own_files

    if not has_own_files(trace):
        return
    from nptltrace.trace.bundling.own_names import keep_names

    seconds = min(max(elapsed_s * _NAMING, _NAMING_LEAST), _NAMING_MOST)
    try:
        left_out = keep_names(trace, seconds)
    except PttError as error:
        say(args, f"no names are kept in the trace: {error}")
        return
    except ModuleNotFoundError as error:
        # A machine that only records needs no libraries for reading programs.
        say(args, f"no names are kept in the trace: {error.name} is not installed")
        return
    except KeyboardInterrupt:
        say(args, "no names are kept in the trace: interrupted")
        return
    young = [path for path in left_out if not _is_old(path)]
    if young:
        more = f" and {len(young) - 1} more" if len(young) > 1 else ""
        say(args, f"the names of {young[0]}{more} are not kept in the trace, for there are too "
            f"many; ptt bundle {trace} takes its time")  # fmt: skip


def _is_old(path: str) -> bool:
    """Return whether a file is so old that the user will hardly rebuild it."""
    try:
        return time.time() - Path(path).stat().st_mtime > _OLD_S
    except OSError:
        return False


def _labels(args: argparse.Namespace) -> dict[str, str]:
    """Return the labels for the store, before the program runs."""
    if args.fleet is None:
        if args.label:
            raise UsageError("--label needs --fleet")
        return {}
    from importlib.util import find_spec

    from nptltrace.fleet.labels import parse_label

    if find_spec("deltalake") is None:
        raise UsageError("--fleet needs deltalake, which is not installed: pip install deltalake")
    return dict(parse_label(text) for text in args.label or ())


def _added(place: str, trace: Path, labels: dict[str, str]) -> str:
    """Add the run to a store, and return a message; the trace stays in any case."""
    from nptltrace.fleet.adding import add_run
    from nptltrace.fleet.store import Store

    try:
        add_run(Store(place, create=True), trace, labels)
    except PttError as error:
        return f"not added to {place}: {error}; ptt fleet add {place} {trace} tries again"
    return f"added to {place}"


def _viewer(options: RecordOptions) -> Beside:
    """Return the viewer of the recording.

    Raises:
        UsageError: The trace cannot be read before the program ends.
    """
    from nptltrace.recording.viewer_process import Beside

    if options.handler.name not in {"ring", "shared"} or options.original:
        raise UsageError(
            "--ui needs a handler that writes the trace while the program runs: ring or shared"
        )
    return Beside()
