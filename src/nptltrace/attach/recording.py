"""A recording of a process that was not started for it: from the first look at it to the trace."""

from __future__ import annotations

import os
import time
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
from nptltrace.recording.recorder import Outcome, make_segment
from nptltrace.recording.settings.options import RecordOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace._binding.libpttcollect import Collector, Stats
    from nptltrace.recording.files.session import SessionDir
    from nptltrace.recording.settings.levels import Levels
    from nptltrace.recording.settings.options import BufferOptions

__all__ = ["AttachOptions", "Entrance", "Recording", "record"]

_PAUSE_S = 0.05
_FLUSH_S = 1.0
# The thread has to load the tracer, and may wait for somebody who loads something else.
_LOADING_S = 15.0
_LEAVING_S = 10.0


@dataclass(frozen=True, slots=True)
class AttachOptions:
    """All of `ptt attach`.

    Attributes:
        pid: The process.
        output: The trace directory.
        levels: Detail levels while it is attached.
        buffers: Sizes and policies.
        duration_ns: How long to record; None until somebody interrupts it, or the process ends.
        patience_ns: How long to look for a thread that can be stopped.
        force: Replace what is in the trace directory.
        verbosity: How much to say on stderr.
    """

    pid: int
    output: Path
    levels: Levels
    buffers: BufferOptions
    duration_ns: int | None = None
    patience_ns: int = 5_000_000_000
    force: bool = False
    verbosity: int = 0

    def recording(self, command: tuple[str, ...]) -> RecordOptions:
        """Return the same options for a recording."""
        return RecordOptions(
            command=command,
            output=self.output,
            force=self.force,
            levels=self.levels,
            buffers=self.buffers,
            children=False,
            verbosity=self.verbosity,
        )


class Entrance(Protocol):
    """A way for the tracer into a process."""

    @property
    def stopped_ns(self) -> int:
        """How long a thread was stopped for it."""

    def begin(self, text: str, patience_ns: int, waits: Callable[[], bool]) -> None:
        """Have a thread of the process load the tracer and call it.

        Args:
            text: What the tracer is given.
            patience_ns: How long to try.
            waits: Called between two attempts; returns whether to go on.

        Raises:
            PttError: It cannot be done.
        """

    def failure(self) -> str:
        """Return why that thread does not run, empty as long as it may."""

    def is_over(self) -> bool:
        """Return whether nobody needs the memory any more that the thread began in."""


def record(
    options: AttachOptions,
    entrance: Entrance,
    ended: Callable[[], bool],
    began: Callable[[Recording], None],
) -> tuple[Outcome, Recording]:
    """Record a process that runs, and leave it.

    Args:
        options: What was asked for.
        entrance: How the tracer gets into it.
        ended: Called many times a second; returns whether somebody wants it to end.
        began: Called when it records.

    Returns:
        What became of it.

    Raises:
        PttError: It does not record; the message says why.
    """
    recording = Recording(options, entrance)
    try:
        recording.begin(ended)
        began(recording)
        recording.go_on(ended)
    except BaseException:
        recording.abandon()
        raise
    return recording.finish(), recording


class Recording:
    """One recording of a process that is attached.

    Args:
        options: What was asked for.
        entrance: How the tracer gets into it.

    Attributes:
        has_left: Whether the process is as it was before.
        own_end: Why the process ended the recording by itself, or empty.
        calls: How many modules were looked at, calls lead to the tracer, and could not be led.
    """

    def __init__(self, options: AttachOptions, entrance: Entrance) -> None:
        self._options, self._pid, self._entrance = options, options.pid, entrance
        self._trace, self._new = trace_directories.make(options.output, force=options.force)
        self._collector: Collector
        self._session: SessionDir
        recorded = options.recording(_command(self._pid))
        try:
            self._collector, self._session = make_segment(recorded, self._trace)
        except BaseException:
            self._remove_trace()
            raise
        self._start = start_time(self._pid)
        self._clock = Clockwork(self._collector.clock)
        self._described = TraceDir.describe(
            self._trace, recorded, uuid=self._collector.uuid, session=self._session.path,
            clock=self._clock, nptl="stock",
        )  # fmt: skip
        self._session.note(self._trace.path)
        self._described.write(self._clock.calibration())
        log = ProcessLog(self._described.process_log())
        unix_ns = self._clock.calibration().unix_ns
        self._watch = ProcessWatch(self._collector, self._session, log, unix_ns)
        self._drain = RingDrain(self._collector, self._session)
        self._agent = AgentFile(self._session.path / "attach")
        self._flushed = time.monotonic()
        self._tidy = False
        self._threads = self._recorded_ns = 0
        self.has_left = False
        self.own_end = ""
        self.calls = (0, 0, 0)

    def _let_in(self) -> None:
        """Where the process is another user's, have it open the two files that it needs.

        The directory stays ours: what we read and write there nobody else puts there.
        """
        try:
            user, group = (int(ids.split()[0]) for ids in owner_of(self._pid))
        except (FileNotFoundError, ProcessLookupError):
            raise PttError(f"cannot attach to process {self._pid}: it has ended") from None
        if user == os.geteuid():
            return
        self._session.path.chmod(0o711)
        for path in (self._session.segment, self._session.path / "attach"):
            os.chown(path, user, group)

    @property
    def stopped_ns(self) -> int:
        """How long the one thread was stopped that had to be."""
        return self._entrance.stopped_ns

    def begin(self, ended: Callable[[], bool]) -> None:
        """Have the process record.

        Raises:
            PttError: It does not.
        """
        self._let_in()
        levels = self._options.levels
        items = [f"level={levels.argument}"] if levels.argument else []
        items += ["children=0", f"control={self._session.path}"]
        variable = f"ring:{self._session.path}:{levels.number}:{';'.join(items)}"
        text = f"{self._session.path / 'attach'}\n{variable}"
        self._entrance.begin(text, self._options.patience_ns, lambda: not ended())
        until = time.monotonic() + _LOADING_S
        while True:
            # A thread that has returned has said before why, if it could. A thread that makes way
            # for a call returns too: look first whether it has returned, then whether it has begun.
            failure = self._entrance.failure()
            if self._agent.has_begun:
                return
            failure = self._agent.refusal or failure
            if not failure and self._has_ended():
                failure = "it has ended"
            if not failure and time.monotonic() > until:
                failure = "its new thread waits for the dynamic linker, or for a processor"
            if failure:
                raise PttError(f"cannot attach to process {self._pid}: {failure}")
            self._step()

    def go_on(self, ended: Callable[[], bool]) -> None:
        """Record until the time is over, somebody ends it, or the process ends or leaves."""
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
        # Of a thread that runs nobody knows where it is: most are asleep at one look or another.
        self._tidy = self._tidy or self._entrance.is_over()
        now = time.monotonic()
        flush = now - self._flushed >= _FLUSH_S
        self._drain.step(flush=flush)
        self._watch.sites()
        self._watch.step()
        if flush:
            self._flushed = now
            self._watch.look_closely()
        self._drain.sleep(_PAUSE_S)

    def _has_ended(self) -> bool:
        """Return whether the process has ended, or runs another program."""
        start = start_time(self._pid)
        if start is None or start != self._start:
            return True
        return self._agent.records and bool(self._watch.pids) and not self._watch.busy()

    def _is_alone(self) -> bool:
        """Return whether all threads have ended but the thread that was put into the process."""
        # While that thread is away, the one thread that is left is the program's.
        return threads_behind_first(self._pid) == 1 and not self._agent.is_away

    def _let_go(self) -> None:
        """Have the process leave; what it writes meanwhile is still taken."""
        self.calls = self._agent.calls
        self._agent.leave(tidy=self._tidy or self._entrance.is_over())
        until = time.monotonic() + _LEAVING_S
        while not self._agent.has_left and not self._has_ended() and time.monotonic() < until:
            self._step()
        self.has_left = self._agent.has_left
        self.own_end = self._agent.own_end

    def finish(self) -> Outcome:
        """Have the process leave, and write the rest of the trace."""
        self._let_go()
        self._watch.give_up()
        stats = self._drain.finish()
        self._watch.sites()
        processes = self._watch.seen
        self._watch.close()
        self._write_result(stats)
        self._tear_down()
        self._trace.close()
        return Outcome(0, self._trace.path, stats, processes)

    def _write_result(self, stats: Stats) -> None:
        modules, calls, refused = self.calls
        self._described.facts |= completeness(stats)
        self._described.facts.update(
            exit_status=None,
            uncovered=self._silent(stats),
            # Calls that had begun, and locks that were held, when it was attached are not in it.
            level_changed=True,
            attached={
                "pid": self._pid, "stopped_ns": self.stopped_ns, "modules": modules,
                "calls": calls, "refused": refused, "left": self.has_left,
            },
        )  # fmt: skip
        self._described.write(self._clock.calibration(), stats)

    def _silent(self, stats: Stats) -> list[dict[str, str]]:
        """Return the notes on a process without events."""
        if stats.events or stats.lost or not self._threads:
            return []
        return without_events(self._pid, self._threads, self._recorded_ns)

    def abandon(self) -> None:
        """Leave nothing behind of a recording that did not come about."""
        self._agent.leave(tidy=False)
        self._collector.close()
        self._watch.close()
        self._tear_down()
        self._remove_trace()

    def _tear_down(self) -> None:
        # The process keeps the segment mapped: a thread may yet come back from a call in a hook.
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


def _threads(pid: int) -> int:
    """Return how many threads of its own a process has: the tracer's agent is one more."""
    return max(0, len(names_in(Path(f"/proc/{pid}/task"))) - 1)


def _command(pid: int) -> tuple[str, ...]:
    """Return what a process was started with."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 -- as short as it can be
            words = file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in words)
