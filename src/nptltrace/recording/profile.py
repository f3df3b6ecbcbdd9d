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
import sys
import tempfile
import time
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

from nptltrace._escaping import talk
from nptltrace._files import trace_directories
from nptltrace._files.directories import Directory
from nptltrace._units import plural
from nptltrace.errors import PttError, UsageError
from nptltrace.recording.files.tracedir import TraceDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

    from nptltrace._binding.libpttcollect import Collector, Stats
    from nptltrace.recording.files.tracedir import Clockwork
    from nptltrace.recording.processes import ProcessWatch
    from nptltrace.recording.settings.profile import ProfileOptions

__all__ = ["ProfileFeed", "make_spool", "remove_spool"]

_RUN = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from nptltrace.profiling.worker import main
main()"""
# The second process must not take a processor from the program.
_NICE = 19
# A segment ends early at this size. While so many segments wait, no further segment begins, and
# beyond the last size the newest segment is given up.
_SEGMENT_BYTES, _WAITING_MOST, _GIVEN_UP_BYTES = 64 << 20, 2, 512 << 20
# At the end, the second process has this time for each segment that waits.
_LAST_S = 60.0
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
        self._totals: dict[str, int] = {}
        self._waiting: list[Directory] = []
        self._answers = b""
        self._errors: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 -- closed at the end
        self._worker = self._start()
        try:
            self._segment = self._new_segment()
            collector.turn(self._segment.by_descriptor)
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
        package = Path(__file__).parents[2]
        try:
            # In a new session, it does not get the interrupts for the program.
            worker = subprocess.Popen(
                [sys.executable, "-P", "-c", _RUN, str(package), json.dumps(settings)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                start_new_session=True, env=dict(os.environ),
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
        self._number += 1
        path = trace_directories.beside(self._trace.path, ".", f".{self._number:03}")
        return trace_directories.make(path, force=False)[0]

    def step(self, stats: Stats) -> None:
        """End the segment if its time is over, or if it is large.

        Args:
            stats: The counts of the recording so far.
        """
        self._hear()
        now_ns = time.time_ns()
        size = stats.bytes - self._before["bytes"]
        if self.watch is None or (now_ns < self._end_ns and size < _SEGMENT_BYTES):
            return
        if len(self._waiting) >= _WAITING_MOST and size < _GIVEN_UP_BYTES:
            return  # a longer segment is better than segments that nobody reads
        try:
            following = self._new_segment()
        except PttError as error:
            self._fail(str(error))
            self._end_ns = self._next_end(now_ns)
            return
        stats = self._collector.drain(flush=True)
        self._collector.turn(following.by_descriptor)
        ended, self._segment = self._segment, following
        self._hand_over(ended, stats, last=False)

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
        self._before = new
        self._began_ns, self._end_ns = now_ns, self._next_end(now_ns)
        full = len(self._waiting) > _WAITING_MOST and not last
        if self._failed or full:
            self._given_up += events
            self._release(segment)
            return
        try:
            self._describe(segment, now_ns)
        except OSError as error:
            self._fail(f"{segment.path}: {error.strerror}")
        message["given_up"], self._given_up = self._given_up, 0
        self._waiting.append(segment)
        self._tell(message)

    def _describe(self, segment: Directory, end_ns: int) -> None:
        """Make a trace of the files of a segment: metadata, and what its events refer to."""
        watch = self.watch
        if watch is not None:
            watch.sites()
            watch.step()
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
        if watch is not None:
            facts |= watch.uncovered(children=self._children)
        TraceDir(segment, facts).write(self._clock.calibration())

    def _release(self, segment: Directory) -> None:
        """Remove a segment, or move its events to the trace that keeps them."""
        if self._options.trace is not None:
            # A file of a stream that continues has a number behind its name, as with --max-files.
            generation = segment.path.suffix
            for name in segment.names():
                if name.startswith("stream-"):
                    os.rename(
                        name, name + generation,
                        src_dir_fd=segment.fd, dst_dir_fd=self._trace.directory.fd,
                    )  # fmt: skip
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
        while data := pipe.read(1 << 16):
            self._answers += data
        *lines, self._answers = self._answers.split(b"\n")
        for line in lines:
            answer = json.loads(line)
            for remark in answer.get("remarks", ()):
                self._say(remark)
            self._totals = answer.get("totals", self._totals)
            if "done" in answer and self._waiting:
                self._release(self._waiting.pop(0))
        if self._worker.poll() is not None and (self._waiting or self._worker.returncode):
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").splitlines()
            self._fail(said[-1] if said else f"exit status {self._worker.returncode}")

    def _fail(self, why: str) -> None:
        """Say once that the profile has ended; the program goes on."""
        if not self._failed:
            talk(f"the profile cannot be written: {why}; the program goes on")
        self._failed = why
        while self._waiting:
            self._release(self._waiting.pop(0))

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
        self._worker.wait()
        while self._waiting:
            self._fail("it was not finished in time")
        self._errors.close()

    def abandon(self) -> None:
        """End a profile whose recording never began."""
        self._worker.kill()
        self._failed = "the recording never began"
        self._waiting.append(self._segment)
        self._stop()

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
    left there are removed.

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
            left = [name for name in directory.names() if _SPOOL.fullmatch(name)]
    except OSError as error:
        raise PttError(f"cannot make the directory {options.directory}: {error.strerror}") from None
    for name in left:
        with suppress(PttError, OSError):  # its recorder lives
            trace_directories.remove(
                trace_directories.open_own(options.directory / name), whole=True
            )
    return options.trace or options.directory / f".events-{os.getpid()}-{os.urandom(4).hex()}"


def remove_spool(options: ProfileOptions, trace: Directory) -> None:
    """Remove the directory with the facts of a recording, unless it is a trace that stays."""
    if options.trace is not None:
        trace.close()
        return
    trace_directories.remove(trace, whole=True)
