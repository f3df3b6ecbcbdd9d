"""Feeds a profile: cuts the recording into segments, and hands each segment to a second process.

A segment is a small trace of its own. The second process (`nptltrace.profiling`) adds up its waits,
and writes the profile of its time. Then the segment is removed, so events take no lasting room.
The second process imports NumPy and reads symbols; this process must keep draining meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from contextlib import suppress
from copy import deepcopy

from nptltrace import _paths
from nptltrace._escaping import talk
from nptltrace._files import trace_directories
from nptltrace._files.directories import Directory
from nptltrace._units import plural
from nptltrace.errors import PttError, UsageError, one_line
from nptltrace.recording.files.tracedir import TraceDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, BinaryIO

    from nptltrace._binding.libpttcollect import Collector, Stats
    from nptltrace.recording.files.tracedir import Clockwork
    from nptltrace.recording.processes import ProcessWatch
    from nptltrace.recording.settings.profile import ProfileOptions

__all__ = ["ProfileFeed", "make_spool", "remove_spool"]

# The second process must not take a processor from the program.
_NICE = 19
# A segment ends early at this size. While so many segments wait, no further segment begins. When
# all segments together have the last size, the newest segment is given up.
_SEGMENT_BYTES, _WAITING_MOST, _GIVEN_UP_BYTES = 64 << 20, 2, 512 << 20
# At the end, the second process has this time for each segment that waits.
_LAST_S = 60.0
# When nobody waits for it any more, it has this time to remove a file that is not complete.
_LEAVING_S = 1.0
_LOOK_S = 0.02
_LOG = "processes.jsonl"
# Names of directories with events, of this recorder and of killed recorders.
_SPOOL = re.compile(r"\.{1,2}events-\d+-[0-9a-f]{8}(\.\d+)?")


class ProfileFeed:
    """Cuts a recording into segments, and has the second process add them up.

    Args:
        options: The options of the profile.
        collector: The collector, which writes the segments.
        trace: The directory with the facts of the recording; no events go there.
        clock: The clock of the recording.
        children: Whether child processes are followed.
        verbosity: How many remarks go to stderr.

    Attributes:
        watch: The processes of the recording. There is no segment before they are known.

    Raises:
        PttError: The first segment cannot be made, or the second process does not start.
    """

    def __init__(
        self, options: ProfileOptions, collector: Collector, trace: TraceDir, clock: Clockwork,
        *, children: bool, verbosity: int,
    ) -> None:  # fmt: skip
        self._options, self._collector, self._trace = options, collector, trace
        self._clock, self._children, self._verbosity = clock, children, verbosity
        self.watch: ProcessWatch | None = None
        self._number = 0
        self._began_ns = time.time_ns()
        self._end_ns = self._next_end(self._began_ns)
        self._before: dict[str, int] = {"bytes": 0, "lost": 0, "events": 0}
        self._given_up = 0
        self._failed = ""
        self._rename_failed = False
        self._totals: dict[str, int] = {}
        self._waiting: list[tuple[Directory, int]] = []  # segments, and their bytes
        self._answers = b""
        self._worker = self._start()
        try:
            self._segment = self._new_segment()
        except BaseException:
            self._worker.kill()
            self._stop()
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        options = self._options
        settings = {
            "directory": str(options.directory.absolute()),
            "min_wait_ns": options.min_wait_ns,
            "sample_wait_ns": options.sample_wait_ns,
        }
        command = _paths.python_command("nptltrace.profiling.worker", "main", json.dumps(settings))
        try:
            self._errors: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 -- closed at the end
            # In a new session, it does not get the interrupts for the program.
            worker = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise PttError(f"the profile cannot be written: {error.strerror}") from None
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, worker.pid, _NICE)
        assert worker.stdout is not None  # noqa: S101 -- it is a pipe
        os.set_blocking(worker.stdout.fileno(), False)
        return worker

    def _next_end(self, now_ns: int) -> int:
        """Return the next multiple of the interval since 1970: hosts write at the same times."""
        interval_ns = self._options.interval_ns
        return now_ns - now_ns % interval_ns + interval_ns

    # ---- segments ------------------------------------------------------------------------------

    def _new_segment(self) -> Directory:
        """Make a segment; the collector writes into it from now on.

        Raises:
            PttError: The segment cannot be made. The collector goes on as before.
        """
        self._number += 1
        path = trace_directories.beside(self._trace.path, ".", f".{self._number:03}")
        segment = trace_directories.make(path, force=False)[0]
        try:
            self._collector.turn(segment.by_descriptor)
        except BaseException:
            trace_directories.remove(segment, whole=True)
            raise
        return segment

    def step(self, stats: Stats) -> None:
        """End the segment if its time is over, or if it is large.

        Args:
            stats: The counts of the recording so far.
        """
        self._hear()
        size = stats.bytes - self._before["bytes"]
        if self._failed:
            if size >= _SEGMENT_BYTES:
                self._forget_events()
            return
        if self.watch is None or (time.time_ns() < self._end_ns and size < _SEGMENT_BYTES):
            return
        room = _GIVEN_UP_BYTES - sum(waiting for _, waiting in self._waiting)
        if len(self._waiting) >= _WAITING_MOST and size < room:
            return  # a longer segment is better than segments that nobody reads
        try:
            self._cut(self.watch)
        except (PttError, OSError) as error:
            self._fail(one_line(error))

    def _cut(self, watch: ProcessWatch) -> None:
        """Hand the segment over, and continue in another."""
        stats = self._collector.drain(flush=True)
        watch.sites()
        watch.step()
        ended, self._segment = self._segment, self._new_segment()
        self._hand_over(ended, stats, last=False)

    def _forget_events(self) -> None:
        """Empty the segment: after a failure, nobody reads its events."""
        stats = self._collector.drain(flush=True)
        self._before["bytes"] = stats.bytes
        if self._options.trace is not None:
            return  # the trace gets them at the end
        with suppress(PttError, OSError):
            for name in self._segment.names():
                if name.startswith("stream-"):
                    self._segment.unlink(name)
            self._collector.turn(self._segment.by_descriptor)

    def _hand_over(self, segment: Directory, stats: Stats, *, last: bool) -> None:
        """Describe a finished segment, and hand it to the second process."""
        now_ns = time.time_ns()
        new = {"bytes": stats.bytes, "lost": stats.lost, "events": stats.events}
        events = new["events"] - self._before["events"]
        message: dict[str, Any] = {
            "begin_ns": self._began_ns, "end_ns": now_ns,
            "lost": new["lost"] - self._before["lost"], "events": events,
            "segment": str(segment.path.absolute()), "last": last,
        }  # fmt: skip
        size, self._before = new["bytes"] - self._before["bytes"], new
        self._began_ns, self._end_ns = now_ns, self._next_end(now_ns)
        full = len(self._waiting) >= _WAITING_MOST and not last
        if self._failed or full:
            self._given_up += events
            self._release(segment)
            return
        try:
            self._describe(segment, now_ns)
        except (PttError, OSError) as error:
            self._fail(one_line(error))
            self._release(segment)
            return
        message["given_up"], self._given_up = self._given_up, 0
        self._waiting.append((segment, size))
        self._tell(message)

    def _describe(self, segment: Directory, end_ns: int) -> None:
        """Make a trace of the files of a segment: metadata, and what its events refer to."""
        with self._trace.directory.inside("info") as ours, segment.inside("info") as info:
            try:
                os.link(_LOG, _LOG, src_dir_fd=ours.fd, dst_dir_fd=info.fd)
            except OSError:  # the file system has no links
                with os.fdopen(info.create(_LOG), "wb") as file:
                    file.write(ours.read(_LOG))
        facts = deepcopy(self._trace.facts)
        # Readers take no wait at its end for a final wait.
        facts |= {"state": "complete", "snapshot": "profile", "end_unix_ns": end_ns}
        facts["derived_from"] = [facts["uuid"]]
        if self.watch is not None:
            facts |= self.watch.uncovered(children=self._children)
        TraceDir(segment, facts).write(self._clock.calibration())

    def _release(self, segment: Directory) -> None:
        """Remove a segment, or move its events to the trace that keeps them."""
        if self._options.trace is not None:
            # A file of a stream that continues has a number behind its name, as with --max-files.
            generation, place = segment.path.suffix, self._trace.directory
            try:
                for name in segment.names():
                    if name.startswith("stream-"):
                        os.rename(
                            name, name + generation, src_dir_fd=segment.fd, dst_dir_fd=place.fd
                        )
            except OSError as error:
                if not self._rename_failed:
                    talk(f"{place.path}: {error.strerror}; the trace misses events")
                self._rename_failed = True
        trace_directories.remove(segment, whole=True)

    # ---- the second process --------------------------------------------------------------------

    def _tell(self, message: dict[str, Any]) -> None:
        pipe = self._worker.stdin
        try:
            assert pipe is not None  # noqa: S101 -- it is a pipe
            pipe.write(json.dumps(message).encode() + b"\n")
            pipe.flush()
        except OSError:
            self._hear()

    def _hear(self) -> None:
        """Take in the answers: a line for each segment that is added up."""
        pipe = self._worker.stdout
        assert pipe is not None  # noqa: S101 -- it is a pipe
        # Before the last read: a process that has ended has written all of its answers.
        ended = self._worker.poll() is not None
        while data := pipe.read(1 << 16):
            self._answers += data
        *lines, self._answers = self._answers.split(b"\n")
        for line in lines:
            answer = json.loads(line)
            for remark in answer.get("remarks", ()):
                self._say(remark)
            self._totals = answer.get("totals", self._totals)
            if "done" in answer and self._waiting:
                self._release(self._waiting.pop(0)[0])
        if ended and not self._failed and (self._waiting or self._worker.returncode):
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").splitlines()
            self._fail(said[-1] if said else f"exit status {self._worker.returncode}")

    def _fail(self, why: str) -> None:
        """Say once that the profile has ended; the program goes on."""
        if not self._failed:
            talk(f"the profile cannot be written: {why}; the program goes on")
        self._failed = why
        while self._waiting:
            self._release(self._waiting.pop(0)[0])

    def end(self, stats: Stats, interrupted: Callable[[float], bool]) -> None:
        """Hand over the last segment, and wait for the second process.

        Args:
            stats: The counts of the recording, after its last event.
            interrupted: Waits for so many seconds at most, and returns whether the user does not
                want to wait any more.
        """
        self._hand_over(self._segment, stats, last=True)
        pipe = self._worker.stdin
        assert pipe is not None  # noqa: S101 -- it is a pipe
        with suppress(OSError):
            pipe.close()
        until = time.monotonic() + _LAST_S * (1 + len(self._waiting))
        while self._worker.poll() is None and not self._failed:
            if interrupted(_LOOK_S) or time.monotonic() > until:
                break
            self._hear()
        self._hear()
        self._stop()
        if self._verbosity >= 0 and not self._failed:
            talk(self._summary())

    def _stop(self) -> None:
        if self._worker.poll() is None:
            self._worker.terminate()
        try:
            self._worker.wait(_LEAVING_S)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()
        if self._waiting:
            self._fail("it was not finished in time")
        self._errors.close()

    def abandon(self) -> None:
        """End a profile whose recording never began."""
        self._worker.kill()
        self._failed = "the recording never began"
        self._stop()
        self._release(self._segment)

    def _summary(self) -> str:
        totals = self._totals
        waits, wait_ns = totals.get("waits", 0), totals.get("wait_ns", 0)
        intervals = totals.get("intervals", 0)
        text = (
            f"profiled {waits} contended {plural(waits, 'wait')} of {wait_ns / 1e9:.3f} s in "
            f"{intervals} {plural(intervals, 'interval')}: {self._options.directory}"
        )
        lost = totals.get("lost", 0)
        return f"{text} ({lost} events lost)" if lost else text

    def _say(self, message: str) -> None:
        if self._verbosity >= 0:
            talk(message)


def make_spool(options: ProfileOptions) -> Path:
    """Make the directory of a profile, and return the path for the facts of the recording.

    The directory may have profiles of other recordings, which stay. Events that killed recorders
    left there, or beside the trace that keeps the events, are removed.

    Args:
        options: The options of the profile.

    Raises:
        UsageError: The directory belongs to another user.
        PttError: The directory cannot be made.
    """
    try:
        options.directory.mkdir(exist_ok=True)
        with Directory.open(options.directory) as directory:
            if not directory.is_ours():
                raise UsageError(f"{options.directory} belongs to another user")
            names = [name for name in directory.names() if _SPOOL.fullmatch(name)]
    except OSError as error:
        raise PttError(f"cannot make the directory {options.directory}: {error.strerror}") from None
    left = [options.directory / name for name in names]
    if options.trace is not None:
        left += _segments_beside(options.trace)
    for path in left:
        with suppress(PttError, OSError):  # its recorder lives
            trace_directories.remove(trace_directories.open_own(path), whole=True)
    return options.trace or options.directory / f".events-{os.getpid()}-{os.urandom(4).hex()}"


def _segments_beside(trace: Path) -> list[Path]:
    """Return the segments beside a trace that keeps the events."""
    begin = trace_directories.beside(trace, ".", ".")
    try:
        names = os.listdir(begin.parent)  # noqa: PTH208 -- names
    except OSError:
        return []
    return [
        begin.with_name(name)
        for name in names
        if name.startswith(begin.name) and name.removeprefix(begin.name).isdecimal()
    ]


def remove_spool(options: ProfileOptions, trace: Directory) -> None:
    """Remove the directory with the facts of a finished recording, unless the trace stays."""
    if options.trace is not None:
        trace.close()
        return
    trace_directories.remove(trace, whole=True)
