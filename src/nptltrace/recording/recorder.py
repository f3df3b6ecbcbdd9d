"""`ptt record`: starts the program, drains its events, and finishes the trace.

The program waits only for the parts that its first event needs. The modules that watch the program
are imported while the program loads.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path

from nptltrace._binding.libpttcollect import Collector, CollectorError, Stats, read_clock
from nptltrace._dataclasses import dataclass
from nptltrace._escaping import talk
from nptltrace._files import trace_directories
from nptltrace._units import plural
from nptltrace.errors import PttError, UsageError
from nptltrace.recording import launch
from nptltrace.recording.drains import NoDrain, RingDrain
from nptltrace.recording.files.session import SessionDir, left_overs, start_time
from nptltrace.recording.files.tracedir import SHORTENED, UNTRUE, Clockwork, TraceDir, completeness
from nptltrace.recording.interrupts import Interrupts
from nptltrace.recording.settings.levels import HIGHEST
from nptltrace.recording.settings.options import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace._files.directories import Directory
    from nptltrace.nptl.store import Built
    from nptltrace.recording.drains import Drain
    from nptltrace.recording.launch import Child
    from nptltrace.recording.processes import ProcessWatch
    from nptltrace.recording.profile import ProfileFeed
    from nptltrace.recording.schedule import Schedule
    from nptltrace.recording.settings.options import RecordOptions
    from nptltrace.recording.snapshots.maker import Snapshots

__all__ = ["Outcome", "make_segment", "run", "summary"]

_FLUSH_S = 1.0
_LOOK_S = 0.005
_LINGER_S = 0.02
# The recorder waits this long for a forked child that has not reported itself.
_NEWBORN_S = 1.0
# Up to this many pids, a look at each pid is faster than a list of all processes.
_FEW_PIDS = 64
# In this time the kernel cannot use up all pids.
_IN_TURN_S = 5.0
_PROGRESS_AFTER_S = 3.0
_FAULTS_REPORTED = 5


@dataclass(frozen=True)
class Outcome:
    """How a recording ended.

    Attributes:
        status: Exit status of the program, 128 + n for signal n.
        trace: The trace directory; None if the program ran untraced.
        stats: Counts of the recording.
        processes: Number of traced process images.
    """

    status: int
    trace: Path | None
    stats: Stats
    processes: int = 0


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"  # noqa: PLR2004


def summary(outcome: Outcome) -> str:
    """Return the last line of `ptt record`."""
    stats = outcome.stats
    return (
        f"recorded {stats.events} {plural(stats.events, 'event')} from "
        f"{outcome.processes} {plural(outcome.processes, 'process', 'processes')}, "
        f"{stats.threads} {plural(stats.threads, 'thread')} in {outcome.trace} "
        f"({stats.lost} lost, {_size(stats.bytes)})"
    )


def run(options: RecordOptions, started: Callable[[Path], None] | None = None) -> Outcome:
    """Run a program traced, until the program and its traced processes have ended.

    Args:
        options: The program, and how to record it.
        started: Called with the trace directory when it can be opened, before the program runs.

    Raises:
        UsageError: The options contradict one another, or the trace directory is in use.
        CannotRun: The program does not exist or cannot be executed.
    """
    if not options.command:
        raise UsageError("no program given")
    program = launch.find_program(options.command[0])
    why = "--original asks for it" if options.original else launch.why_untraceable(program)
    if why is not None:
        if not options.original:
            _say(options, f"{program} cannot be traced: {why}; it runs untraced", -1)
        return _run_untraced(program, options)
    handler = launch.resolve_handler(options.handler)
    options.check()
    if options.handler.name in {"file", "shared"}:
        from nptltrace.recording.shared import check

        check(options)
    nptl = _thread_library(options)
    locks = None
    if options.locks is not None:
        from nptltrace.recording.lock_library import lock_library

        locks = lock_library(options.locks)
    with Interrupts() as interrupts:
        return _Recorder(options, program, handler, nptl, interrupts, locks=locks).run(started)


def _thread_library(options: RecordOptions) -> Built | None:
    """Return the trace-enabled thread library to run on, or None for the system's own."""
    internal = options.levels.highest >= HIGHEST
    wanted = options.nptl or ("auto" if internal else "stock")
    if wanted == "stock":
        return None
    from nptltrace.nptl.store import choose

    built = choose(wanted)
    if built is None and (internal or options.nptl):
        _say(options, "no trace-enabled thread library for this system (ptt nptl build makes one)")
    return built


def _say(options: RecordOptions, message: str, verbosity: int = 0) -> None:
    if options.verbosity >= verbosity:
        talk(message)


def _run_untraced(program: Path, options: RecordOptions) -> Outcome:
    with Interrupts() as interrupts:
        return _wait_untraced(launch.Child.start(program, options.command), interrupts)


def _wait_untraced(child: Child, interrupts: Interrupts) -> Outcome:
    """Let the program run untraced, and wait for its end."""
    child.release(os.environ)
    while not child.poll():
        interrupts.forward(child.pid)
        time.sleep(0.01)
    return Outcome(child.wait(), None, Stats())


class _Recorder:
    """One recording from its first to its last step."""

    def __init__(
        self,
        options: RecordOptions,
        program: Path,
        handler: str,
        nptl: Built | None,
        interrupts: Interrupts,
        *,
        locks: str | None,
    ) -> None:
        self._options = options
        self._program = program
        self._handler = handler
        self._nptl = nptl
        self._locks = locks
        self._interrupts = interrupts
        self._collector: Collector | None = None
        self._watch: ProcessWatch | None = None
        self._session: SessionDir | None = None
        self._began = time.monotonic()
        self._told_error = False
        self._told_waiting = False
        self._ended_at = 0.0
        self._new_trace = False
        self._schedule: Schedule | None = None
        self._snapshots: Snapshots | None = None
        self._profile: ProfileFeed | None = None
        self._progress = _Progress(options)

    def run(self, started: Callable[[Path], None] | None) -> Outcome:
        self._say_left_overs()
        child = launch.Child.start(self._program, self._options.command)
        try:
            directory = self._make_trace_dir(child)
        except BaseException:
            child.abandon()
            raise
        try:
            drain = self._prepare(directory)
        except PttError as error:
            self._clean_up(directory)
            _say(self._options, f"cannot record: {error}; the program runs untraced", -1)
            return _wait_untraced(child, self._interrupts)
        if self._options.buffers.switches and self._collector is not None:
            self._record_switches(self._collector, child)
        if started is not None:
            started(directory.path)
        return self._record(child, directory, drain)

    # ---- before --------------------------------------------------------------------------------

    def _say_left_overs(self) -> None:
        """Name the killed recordings that this user may want to finish or to remove, once."""
        sessions = left_overs()
        if self._options.verbosity < 0:
            return
        here = (self._options.output or Path("trace")).absolute().parent
        traces = [left.trace for left in sessions if left.is_near(here) and left.is_news()]
        if len(traces) == 1:
            words, which, them = f"recording of {traces[0]} was", f"{traces[0]}", "it"
        elif traces:
            words = f"recordings of {traces[0]} and {len(traces) - 1} more were"
            which, them = "--all", "them"
        else:
            return
        hint = f"`ptt recover {which}` finishes {them}; with --remove, it removes {them}"
        _say(self._options, f"the {words} killed; {hint}")

    def _make_trace_dir(self, child: Child) -> Directory:
        force = self._options.force
        if self._options.profile is not None:
            from nptltrace.recording.profile import make_spool

            output = make_spool(self._options.profile)
        else:
            output = self._options.output or trace_directories.free_name(
                f"ptt-{self._program.name}-{child.pid}", force=force
            )
        directory, self._new_trace = trace_directories.make(output, force=force)
        return directory

    def _prepare(self, trace: Directory) -> Drain:
        """Create the session, the segment and the trace, which the first event needs."""
        if self._handler not in {"ring", "shared"}:
            self._session = SessionDir.create()
            if self._handler == "file":
                from nptltrace.recording.shared import FileDrain

                return FileDrain(self._options.handler, trace, self._options.filter)
            return NoDrain(self._options.handler)
        # The clock needs some time for its calibration; the segment is created meanwhile.
        first = read_clock()
        self._collector, self._session = make_segment(self._options, trace)
        self._clock = Clockwork(self._collector.clock, first)
        self._trace = TraceDir.describe(
            trace,
            self._options,
            uuid=self._collector.uuid,
            session=self._session.path,
            clock=self._clock,
            nptl=self._nptl.label if self._nptl else "stock",
        )
        if self._options.buffers.policy == Policy.LOOP:
            from nptltrace.recording.snapshots.maker import Snapshots

            # Before others can find the recorder, and send the signal.
            self._snapshots = Snapshots(
                self._options, self._collector, self._session, self._trace, self._clock
            )
        if self._options.profile is None:
            self._session.note(trace.path)
        try:
            self._trace.write(self._clock.calibration())
            self._trace.begin_untraced()
            self._log = self._trace.process_log()
        except OSError as error:
            raise PttError(f"{trace.path}: {error.strerror}") from None
        if self._options.profile is not None:
            from nptltrace.recording.profile import ProfileFeed

            self._profile = ProfileFeed(
                self._options.profile, self._collector, self._trace, self._clock,
                children=self._options.children, verbosity=self._options.verbosity,
            )  # fmt: skip
        if self._handler == "ring":
            return RingDrain(self._collector, self._session)
        from nptltrace.recording.shared import SharedDrain

        return SharedDrain(self._collector, self._session)

    def _record_switches(self, collector: Collector, child: Child) -> None:
        """Make the kernel record context switches; go on without them if it refuses."""
        try:
            collector.sched(child.pid)
        except CollectorError as error:
            how = launch.how_to_allow_perf(error.errno)
            _say(self._options, f"{error}{how}; what threads say themselves is recorded", -1)

    def _watch_processes(self) -> None:
        if self._collector is None or self._session is None:
            return
        from nptltrace.recording.processes import ProcessLog, ProcessWatch

        unix_ns = self._clock.calibration().unix_ns
        log = ProcessLog(self._log)
        self._watch = ProcessWatch(self._collector, self._session, log, unix_ns)

    # ---- during --------------------------------------------------------------------------------

    def _record(self, child: Child, trace: Directory, drain: Drain) -> Outcome:
        if self._session is None:
            raise PttError("no session")
        env = launch.environment(
            self._options, self._handler, drain.arguments(), self._session.path, self._locks
        )
        if self._nptl is not None:
            launch.run_on(env, self._nptl.lib_dir)
        try:
            child.release(env)
        except launch.CannotRun:
            self._clean_up(trace)
            raise
        self._watch_processes()
        if self._options.delay_ns or self._options.duration_ns is not None:
            from nptltrace.recording.schedule import Schedule

            self._schedule = Schedule(self._options, self._session.path)
        if self._watch is not None:
            self._watch.status_of = child.status_of
        if self._snapshots is not None:
            self._snapshots.watch = self._watch
        if self._profile is not None:
            self._profile.watch = self._watch
        self._loop(child, drain)
        if self._snapshots is not None:
            self._snapshots.end(lambda wait_s: bool(self._interrupts.forward(None, wait_s)))
        return self._finish(child, trace, drain)

    def _loop(self, child: Child, drain: Drain) -> None:
        flushed = looked = time.monotonic()
        stop = False
        while not stop:
            now = time.monotonic()
            flush = now - flushed >= _FLUSH_S
            stats = drain.step(flush=flush)
            self._report_errors(stats)
            if self._schedule is not None:
                self._schedule.step()
            if self._snapshots is not None:
                self._snapshots.step()
            if self._profile is not None:
                self._profile.step(stats)
            came = self._interrupts.forward(None if child.poll() else child.pid)
            ended = child.status is not None
            if ended or flush or now - looked >= _LOOK_S:
                looked = now
                self._look(flush=flush)
            if flush:
                flushed = now
                self._progress.show(stats)
            stop = ended and (bool(came) or not self._others_run(child.pid))
            stop |= self._interrupts.ended_by is not None
            # A program that ends before the sleep does not interrupt it, so look once more.
            if not stop and (ended or not child.poll()):
                pause = self._snapshots.pause if self._snapshots is not None else None
                drain.sleep(_LINGER_S if ended else pause or _FLUSH_S)

    def _look(self, *, flush: bool) -> None:
        watch = self._watch
        if watch is None:
            return
        watch.sites()
        watch.step()
        if flush:
            watch.look_closely()

    def _others_run(self, program: int) -> bool:
        """Return whether traced processes outlive the program, which had the pid `program`."""
        watch = self._watch
        if watch is None:
            return False
        watch.step()
        if not watch.busy() and not self._newborn(program):
            return False
        if not self._told_waiting and watch.live:
            self._told_waiting = True
            pids = ", ".join(str(pid) for pid in sorted(set(watch.live))[:8])
            _say(self._options, f"the program has ended; waiting for what it started: {pids} "
                 "(interrupt to stop recording)")  # fmt: skip
        return True

    def _newborn(self, program: int) -> bool:
        """Return whether the session has a process that has not reported itself yet.

        The parent of a daemon, for example, ends right after its fork.
        """
        if self._session is None or self._watch is None:
            return False
        self._ended_at = self._ended_at or time.monotonic()
        if time.monotonic() - self._ended_at >= _NEWBORN_S:
            return False
        pids = _pids_after(program, time.monotonic() - self._began)
        return _of_session(self._session, pids - self._watch.pids)

    def _report_errors(self, stats: Stats) -> None:
        """Say once that the trace cannot be written."""
        if stats.write_error and not self._told_error:
            self._told_error = True
            _say(self._options, f"cannot write the trace: {os.strerror(stats.write_error)}; "
                 "the program goes on, and unwritten events count as lost", -1)  # fmt: skip

    # ---- after ---------------------------------------------------------------------------------

    def _finish(self, child: Child, trace: Directory, drain: Drain) -> Outcome:
        processes = 0
        self._progress.clear()
        if self._watch is not None:
            self._watch.give_up()
            processes = self._watch.seen
        stats = drain.finish()
        if self._watch is not None:
            stats.unjoined += self._trace.end_untraced()
        self._report_errors(stats)
        if stats.cut:
            _say(self._options, SHORTENED, -1)
        if stats.untrue:
            _say(self._options, UNTRUE, -1)
        if self._watch is not None and self._watch.damaged:
            _say(self._options, "the program overwrote what the tracer keeps of processes in its "
                 f"memory: {len(self._watch.damaged)} entries are left out", -1)  # fmt: skip
        if self._watch is not None:
            self._end_watch(self._watch, stats)
            self._write_result(child, stats)
        self._tear_down()
        if self._collector is None:
            written = self._handler == "file" and "metadata" in trace.names()
            if written:
                trace.close()
            else:
                trace_directories.remove(trace, whole=self._new_trace)
            path = trace.path if written else None
            return Outcome(self._status(child), path, stats, int(written))
        self._leave(trace)
        return Outcome(self._status(child), trace.path, stats, processes)

    def _end_watch(self, watch: ProcessWatch, stats: Stats) -> None:
        watch.sites()
        if self._profile is not None:
            self._profile.end(stats, self._interrupts.is_asked_to_end)
        watch.close()
        self._report_faults()
        for line in watch.unknown:
            _say(self._options, line)

    def _leave(self, trace: Directory) -> None:
        """Close the trace, or remove what a profile does not keep."""
        if self._options.profile is None:
            trace.close()
            return
        from nptltrace.recording.profile import remove_spool

        remove_spool(self._options.profile, trace)

    def _status(self, child: Child) -> int:
        """Return the exit status of the program, or 128 + n if signal n ended the recording."""
        by = self._interrupts.ended_by
        if by is None or child.poll():
            return child.wait()
        _say(self._options, f"the recording was ended by {by.name}; the program goes on untraced")
        return 128 + by

    def _report_faults(self) -> None:
        """Report the places in a shared buffer without a whole record."""
        if self._handler != "shared" or self._collector is None:
            return
        from nptltrace.recording.shared import fault_lines

        faults = fault_lines(self._collector)
        if faults:
            self._trace.facts["faults"] = faults
        for line in faults[:_FAULTS_REPORTED]:
            _say(self._options, line)

    def _write_result(self, child: Child, stats: Stats) -> None:
        self._trace.facts |= completeness(stats)
        self._trace.facts["exit_status"] = child.status
        if self._watch is not None:
            self._trace.facts |= self._watch.uncovered(children=self._options.children)
        try:
            self._trace.write(self._clock.calibration(), stats)
        except OSError as error:
            if not self._told_error:
                _say(self._options, f"cannot write the trace: {error.strerror}", -1)

    def _tear_down(self) -> None:
        if self._collector is not None:
            self._collector.destroy()
        if self._session is not None:
            self._session.remove()

    def _clean_up(self, trace: Directory) -> None:
        """Remove all files of a recording that never began."""
        if self._profile is not None:
            self._profile.abandon()
        if self._watch is not None:
            self._watch.close()
        self._tear_down()
        trace_directories.remove(trace, whole=self._new_trace)


def make_segment(options: RecordOptions, trace: Directory) -> tuple[Collector, SessionDir]:
    """Create the session and the segment in the first directory that has room.

    Raises:
        PttError: No directory has room, or the segment cannot be created.
    """
    failure: PttError | None = None
    for place in SessionDir.places():
        try:
            session = SessionDir.create([place])
        except PttError as error:
            failure = failure or error
            continue
        try:
            return _collector(options, session.segment, trace.by_descriptor), session
        except CollectorError as error:
            session.remove()
            failure = failure or error
            if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EPERM, errno.EACCES}:
                break
    raise failure or PttError("no place for the trace buffers")


def _collector(options: RecordOptions, segment: Path, trace: Path) -> Collector:
    """Return the collector for the chosen handler."""
    native = options.buffers.native()
    if options.handler.name != "shared":
        return Collector(segment, trace, native)
    from nptltrace.recording.shared import SharedCollector, shared_size

    return SharedCollector(segment, trace, native, size=shared_size(options.handler))


def _pids_after(first: int, age_s: float) -> set[int]:
    """Return the processes that may have started after the process `first`.

    The kernel assigns pids in ascending order. So within a few seconds, only processes with greater
    pids are younger. Later, or if the kernel has wrapped around, any process may be younger.

    Args:
        first: Pid of a process.
        age_s: Age of that process at most.
    """
    last = int(Path("/proc/loadavg").read_text(encoding="utf-8").split()[-1])
    in_turn = age_s <= _IN_TURN_S and last >= first
    if in_turn and last - first <= _FEW_PIDS:
        return {pid for pid in range(first + 1, last + 1) if _is_process(pid)} - {os.getpid()}
    pids = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}  # noqa: PTH208 -- names
    return {pid for pid in pids if pid > first} if in_turn else pids


def _is_process(pid: int) -> bool:
    """Return whether an id belongs to a process, and not to a further thread of a process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return f"\nTgid:\t{pid}\n" in status


def _of_session(session: SessionDir, pids: set[int]) -> bool:
    """Return whether a process has the session in its environment or its memory map."""
    needle, uid, ours = os.fsencode(session.path), os.getuid(), start_time(os.getpid()) or 0
    for pid in pids:
        entry = Path("/proc", str(pid))
        try:
            if entry.stat().st_uid != uid or (start_time(pid) or -1) < ours:
                continue
            for name in ("environ", "maps"):
                if needle in (entry / name).read_bytes():
                    return True
        except OSError:
            continue
    return False


class _Progress:
    """Shows the progress of a long recording on a terminal."""

    def __init__(self, options: RecordOptions) -> None:
        self._on = options.verbosity >= 0 and sys.stderr.isatty()
        self._began = time.monotonic()
        self._shown = False

    def show(self, stats: Stats) -> None:
        """Print the counts over the last line."""
        elapsed = time.monotonic() - self._began
        if not self._on or elapsed < _PROGRESS_AFTER_S:
            return
        self._shown = True
        print(
            f"\rptt: {elapsed:.0f} s, {stats.events} {plural(stats.events, 'event')}, "
            f"{stats.live_threads} {plural(stats.live_threads, 'thread')}, "
            f"{stats.bytes / 1e6:.1f} MB, {stats.lost} lost\x1b[K",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
