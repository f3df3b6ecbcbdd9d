"""A recording of a process that runs already, from its beginning to the finished trace."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nptltrace._binding.libc import punch_hole
from nptltrace._dataclasses import dataclass
from nptltrace._files import trace_directories
from nptltrace.attach.agent_file import AgentFile
from nptltrace.attach.refusals import owner_of
from nptltrace.errors import PttError
from nptltrace.recording.drains import RingDrain
from nptltrace.recording.files.session import names_in, start_time, threads_behind_first
from nptltrace.recording.files.tracedir import Clockwork, TraceDir, completeness
from nptltrace.recording.files.uncovered import without_events
from nptltrace.recording.processes import ProcessLog, ProcessWatch
from nptltrace.recording.profile import ProfileFeed, make_spool, remove_spool
from nptltrace.recording.recorder import Outcome, make_segment
from nptltrace.recording.settings.options import RecordOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nptltrace._binding.libpttcollect import Stats
    from nptltrace.recording.files.session import SessionDir
    from nptltrace.recording.settings.levels import Levels
    from nptltrace.recording.settings.options import BufferOptions
    from nptltrace.recording.settings.profile import ProfileOptions

__all__ = ["AttachOptions", "Entrance", "Recording", "await_begin", "give_files", "record"]

_PAUSE_S = 0.05
_FLUSH_S = 1.0
# The thread has to load the tracer, and may wait while another thread loads a library.
_LOADING_S = 15.0
_LEAVING_S = 10.0


@dataclass(frozen=True, slots=True)
class AttachOptions:
    """The options of `ptt attach`.

    Attributes:
        pid: The process.
        output: The trace directory.
        levels: Detail levels during the recording.
        buffers: Sizes and policies.
        duration_ns: How long to record; None: until an interrupt, or the end of the process.
        profile: Write a profile in place of a trace; None = write a trace.
        patience_ns: How long to look for a thread that can be stopped.
        force: Replace the contents of the trace directory.
        verbosity: How many remarks go to stderr.
    """

    pid: int
    output: Path
    levels: Levels
    buffers: BufferOptions
    duration_ns: int | None = None
    profile: ProfileOptions | None = None
    patience_ns: int = 5_000_000_000
    force: bool = False
    verbosity: int = 0

    def recording(self, command: tuple[str, ...]) -> RecordOptions:
        """Return the options in the form for a recording of `command`."""
        return RecordOptions(
            command=command,
            output=self.output,
            force=self.force,
            levels=self.levels,
            buffers=self.buffers,
            profile=self.profile,
            children=False,
            verbosity=self.verbosity,
        )


class Entrance(Protocol):
    """A way for the tracer into a process."""

    @property
    def stopped_ns(self) -> int:
        """How long a thread was stopped, in nanoseconds."""

    def begin(self, text: str, patience_ns: int, waits: Callable[[], bool]) -> None:
        """Let a thread of the process load and call the tracer.

        Args:
            text: The text for the tracer.
            patience_ns: How long to try.
            waits: Called between two attempts; returns whether to continue.

        Raises:
            PttError: No thread of the process can do this.
        """

    def failure(self) -> str:
        """Return why that thread does not run; empty while it may still run."""

    def is_over(self) -> bool:
        """Return whether no thread needs the memory any more that the thread began in."""


def record(
    options: AttachOptions,
    entrance: Entrance,
    ended: Callable[[], bool],
    began: Callable[[Recording], None],
    interrupted: Callable[[float], bool],
) -> tuple[Outcome, Recording]:
    """Record a running process, and leave it.

    Args:
        options: The options of the recording.
        entrance: The way for the tracer into the process.
        ended: Called many times a second; returns whether the recording should end.
        began: Called when the process records.
        interrupted: Waits for so many seconds at most, and returns whether the user does not want
            to wait any more for a profile.

    Returns:
        The outcome, and the finished recording.

    Raises:
        PttError: The process does not record; the message says why.
    """
    recording = Recording(options, entrance)
    try:
        recording.begin(ended)
        began(recording)
        recording.run(ended)
    except BaseException:
        recording.abandon()
        raise
    return recording.finish(interrupted), recording


class Recording:
    """A recording of an attached process.

    Args:
        options: The options of the recording.
        entrance: The way for the tracer into the process.

    Attributes:
        has_left: Whether the process has ended the recording and removed its hooks.
        own_end: Why the process ended the recording by itself, or empty.
        calls: Numbers of examined modules, of hooked calls, and of calls that were not hooked.
    """

    def __init__(self, options: AttachOptions, entrance: Entrance) -> None:
        self._options, self._pid, self._entrance = options, options.pid, entrance
        recorded = options.recording(_command(self._pid))
        if options.profile is None:
            output = options.output
        else:
            options.profile.check()
            output = make_spool(options.profile)
        self._trace, self._new = trace_directories.make(output, force=options.force)
        with ExitStack() as undo:
            undo.callback(self._remove_trace)
            self._begin_trace(recorded, undo)
            undo.pop_all()
        self._flushed = time.monotonic()
        self._tidy = False
        self._threads = self._recorded_ns = 0
        self.has_left = False
        self.own_end = ""
        self.calls = (0, 0, 0)

    def _begin_trace(self, recorded: RecordOptions, undo: ExitStack) -> None:
        """Make what a recording needs. `undo` gets the ways back from each step."""
        self._collector, self._session = make_segment(recorded, self._trace)
        undo.callback(self._tear_down)
        self._start = start_time(self._pid)
        self._clock = Clockwork(self._collector.clock)
        self._described = TraceDir.describe(
            self._trace, recorded, uuid=self._collector.uuid, session=self._session.path,
            clock=self._clock, nptl="stock",
        )  # fmt: skip
        if recorded.profile is None:
            self._session.note(self._trace.path)
        self._described.write(self._clock.calibration())
        log = ProcessLog(self._described.process_log())
        undo.callback(log.close)
        unix_ns = self._clock.calibration().unix_ns
        self._watch = ProcessWatch(self._collector, self._session, log, unix_ns)
        self._drain = RingDrain(self._collector, self._session)
        self._profile: ProfileFeed | None = None
        if recorded.profile is not None:
            self._profile = ProfileFeed(
                recorded.profile, self._collector, self._described, self._clock,
                children=False, verbosity=recorded.verbosity,
            )  # fmt: skip
            undo.callback(self._profile.abandon)
            self._profile.watch = self._watch
        self._agent = AgentFile(self._session.path / "attach")

    @property
    def stopped_ns(self) -> int:
        """How long a thread of the process was stopped, in nanoseconds."""
        return self._entrance.stopped_ns

    def begin(self, ended: Callable[[], bool]) -> None:
        """Wait until the process records.

        Raises:
            PttError: The process does not record; the message says why.
        """
        files = (self._session.segment, self._session.path / "attach")
        give_files(self._pid, self._session, files)
        levels = self._options.levels
        items = [f"level={levels.argument}"] if levels.argument else []
        items += ["children=0", f"control={self._session.path}"]
        variable = f"ring:{self._session.path}:{levels.number}:{';'.join(items)}"
        text = f"{self._session.path / 'attach'}\n{variable}"
        self._entrance.begin(text, self._options.patience_ns, lambda: not ended())
        await_begin(self._pid, self._entrance, self._agent, self._has_ended, self._step)

    def run(self, ended: Callable[[], bool]) -> None:
        """Record until the time is over, `ended` says so, or the process ends or leaves."""
        began = time.monotonic_ns()
        duration_ns = self._options.duration_ns
        until = None if duration_ns is None else time.monotonic_ns() + duration_ns
        while not (
            ended()
            or (until is not None and time.monotonic_ns() >= until)
            or self._has_ended()
            or self._agent.has_left
            or self._is_alone()
        ):
            self._step()
        self._recorded_ns = time.monotonic_ns() - began
        self._threads = _threads(self._pid)

    def _step(self) -> None:
        self._agent.beat()
        # The place of a running thread is not known. Most threads sleep at some look.
        self._tidy = self._tidy or self._entrance.is_over()
        now = time.monotonic()
        flush = now - self._flushed >= _FLUSH_S
        stats = self._drain.step(flush=flush)
        if self._profile is not None:
            self._profile.step(stats)
        self._watch.sites()
        self._watch.step()
        if flush:
            self._flushed = now
            self._watch.look_closely()
        self._drain.sleep(_PAUSE_S)

    def _has_ended(self) -> bool:
        """Return whether the process has ended, or has executed another program."""
        start = start_time(self._pid)
        if start is None or start != self._start:
            return True
        return self._agent.records and bool(self._watch.pids) and not self._watch.busy()

    def _is_alone(self) -> bool:
        """Return whether the tracer's thread is the only thread of the process that is left."""
        # While the tracer's thread is away, the only thread belongs to the program.
        return threads_behind_first(self._pid) == 1 and not self._agent.is_away

    def finish(self, interrupted: Callable[[float], bool]) -> Outcome:
        """Tell the process to leave, record until it has left, and write the rest of the trace.

        Args:
            interrupted: Waits, and returns whether the user does not want to wait any more.
        """
        self.calls = self._agent.calls
        self._agent.leave(tidy=self._tidy or self._entrance.is_over())
        until = time.monotonic() + _LEAVING_S
        while not self._agent.has_left and not self._has_ended() and time.monotonic() < until:
            self._step()
        self.has_left = self._agent.has_left
        self.own_end = self._agent.own_end
        self._watch.give_up()
        stats = self._drain.finish()
        self._watch.sites()
        processes = self._watch.seen
        if self._profile is not None:
            self._profile.end(stats, interrupted)
        self._watch.close()
        self._write_result(stats)
        self._tear_down()
        if self._options.profile is None:
            self._trace.close()
        else:
            remove_spool(self._options.profile, self._trace)
        return Outcome(0, self._trace.path, stats, processes)

    def _write_result(self, stats: Stats) -> None:
        modules, calls, refused = self.calls
        self._described.facts |= completeness(stats)
        self._described.facts.update(
            exit_status=None,
            uncovered=self._notes_without_events(stats),
            # The trace misses calls that had begun and locks that were held at the beginning.
            level_changed=True,
            attached={
                "pid": self._pid, "stopped_ns": self.stopped_ns, "modules": modules,
                "calls": calls, "refused": refused, "left": self.has_left,
            },
        )  # fmt: skip
        self._described.write(self._clock.calibration(), stats)

    def _notes_without_events(self, stats: Stats) -> list[dict[str, str]]:
        if stats.events or stats.lost or not self._threads:
            return []
        return without_events(self._pid, self._threads, self._recorded_ns)

    def abandon(self) -> None:
        """End a recording that failed, and remove its files."""
        self._agent.leave(tidy=False)
        if self._profile is not None:
            self._profile.abandon()
        self._collector.close()
        self._watch.close()
        self._tear_down()
        self._remove_trace()

    def _tear_down(self) -> None:
        # The process keeps the segment mapped, because a thread may still return from a hooked
        # call. So free the memory of the buffers.
        begin, size = self._collector.buffers
        self._collector.destroy()
        try:
            fd = os.open(self._session.segment, os.O_RDWR | os.O_CLOEXEC)
            punch_hole(fd, begin, size)
            os.close(fd)
        except OSError:
            pass
        self._session.remove()

    def _remove_trace(self) -> None:
        trace_directories.remove(self._trace, whole=self._new)


def give_files(pid: int, session: SessionDir, files: Sequence[Path]) -> None:
    """If a process belongs to another user, give the files that it needs to that user.

    The directory stays ours, so nobody else can put files there.

    Args:
        pid: The process.
        session: The session with the files.
        files: The files.

    Raises:
        PttError: The process has ended.
    """
    try:
        user, group = (int(ids.split()[0]) for ids in owner_of(pid))
    except (FileNotFoundError, ProcessLookupError):
        raise PttError(f"cannot attach to process {pid}: it has ended") from None
    if user == os.geteuid():
        return
    session.path.chmod(0o711)
    for path in files:
        os.chown(path, user, group)


def await_begin(
    pid: int,
    entrance: Entrance,
    agent: AgentFile,
    has_ended: Callable[[], bool],
    step: Callable[[], None],
) -> None:
    """Wait until a process records.

    Args:
        pid: The process.
        entrance: The way for the tracer into the process.
        agent: The file that connects us with the tracer.
        has_ended: Returns whether the process has ended.
        step: Called again and again; makes a pause.

    Raises:
        PttError: The process does not record; the message says why.
    """
    until = time.monotonic() + _LOADING_S
    while True:
        # A thread that failed writes the reason before it returns. A thread that has begun may
        # return too, to make way for a call. So check the return first, then the beginning.
        failure = entrance.failure()
        if agent.has_begun:
            return
        failure = agent.refusal or failure
        if not failure and has_ended():
            failure = "it has ended"
        if not failure and time.monotonic() > until:
            failure = "its new thread waits for the dynamic linker, or for a processor"
        if failure:
            raise PttError(f"cannot attach to process {pid}: {failure}")
        step()


def _threads(pid: int) -> int:
    """Return the number of threads of a process, without the thread of the tracer."""
    return max(0, len(names_in(Path(f"/proc/{pid}/task"))) - 1)


def _command(pid: int) -> tuple[str, ...]:
    """Return the command line of a process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in words)
