"""Snapshots of the flight recorder: its buffers as a trace, while the recording goes on."""

from __future__ import annotations

import os
import signal
import time
from copy import deepcopy

from nptltrace._binding.headers.collect import PTT_REASON_TEXT
from nptltrace._escaping import talk
from nptltrace._files import trace_directories
from nptltrace._units import duration, plural, size
from nptltrace.errors import PttError, one_line
from nptltrace.recording.files.tracedir import TraceDir, completeness
from nptltrace.recording.snapshots.requests import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nptltrace._binding.libpttcollect import Collector, Stats
    from nptltrace._files.directories import Directory
    from nptltrace.recording.files.session import SessionDir
    from nptltrace.recording.files.tracedir import Clockwork
    from nptltrace.recording.processes import ProcessWatch
    from nptltrace.recording.settings.options import RecordOptions
    from nptltrace.recording.snapshots.candidates import Candidate

__all__ = ["Snapshots"]

_LOOK_S = 0.01
# Between two snapshots with a reason: at least this time, and so many times the time of the last.
_APART_S, _APART_TIMES = 1.0, 10
_CHECK_APART_S, _CHECK_APART_TIMES = 1.0, 5
# At the end of the recording, a check that goes on has this time.
_LAST_CHECK_S = 30.0
_TICKS_S = 1.0


class Snapshots:
    """Makes snapshots on request, and when a reason comes up.

    Args:
        options: The options of the recording.
        collector: The flight recorder's collector.
        session: The session, where `ptt snapshot` leaves requests.
        trace: The trace of the recording.
        clock: The clock of the recording.

    Attributes:
        watch: The processes of the recording. There is no snapshot before they are known.
    """

    def __init__(
        self,
        options: RecordOptions,
        collector: Collector,
        session: SessionDir,
        trace: TraceDir,
        clock: Clockwork,
    ) -> None:
        self._options, self._triggers = options, options.triggers
        self._collector, self._session, self._trace = collector, session, trace
        self._clock = clock
        self.watch: ProcessWatch | None = None
        texts = [os.fsencode(text) + b"\0" for text in options.triggers.texts]
        self._texts = b"".join([*texts, b"\0"]) if texts else None
        self._signals = 0
        self._number = self._made = self._skipped = 0
        self._free_at = 0.0  # no snapshot with a reason before this time
        self._candidate: Candidate | None = None
        self._check_at = time.monotonic() + _CHECK_APART_S
        self._known: set[str] = set()  # findings that a snapshot has
        self._measured_at, self._frequency = 0.0, 0
        self._told_full = False
        self._blind = False  # checks for findings do not work
        signal.signal(signal.SIGUSR1, self._count)

    @property
    def pause(self) -> float | None:
        """The longest time between two steps, in seconds; None = no limit."""
        looks = self._triggers.min_wait_ns or self._triggers.texts or self._candidate is not None
        return _LOOK_S if looks else None

    def _count(self, *_: object) -> None:
        self._signals += 1

    # ---- steps ---------------------------------------------------------------------------------

    def step(self) -> None:
        """Make the snapshots that are due."""
        if self.watch is None:
            return
        signals, self._signals = self._signals, 0
        for request in requests(self._session.path):
            try:
                wanted, force = request.output()
                path = wanted or self._free_path()
                stats = self._write(path, "ptt snapshot", force=force)
            except PttError as error:
                request.answer(error=str(error))
            else:
                request.answer(trace=str(path.absolute()), text=_contents(stats))
        if self._triggers.signal and signals:
            self._make_for("SIGUSR1")
        if self._triggers.min_wait_ns or self._texts is not None:
            self._look()
        if self._triggers.finding and not self._blind:
            self._check()

    def end(self, interrupted: Callable[[float], bool]) -> None:
        """Answer the last requests, and stop looking.

        Args:
            interrupted: Waits for so many seconds at most, and returns whether the user does not
                want to wait any more.
        """
        # The signal may come as long as the session names the recorder.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        self.step()
        until = time.monotonic() + _LAST_CHECK_S
        while self._candidate is not None:
            if (result := self._candidate.result()) is not None:
                self._judge(result)
            elif interrupted(_LOOK_S) or time.monotonic() >= until:
                self._candidate.stop()
                self._candidate = None
                self._say("the last check for findings was not over: it makes no snapshot")
        if self._skipped:
            self._say(
                f"{self._skipped} further {plural(self._skipped, 'reason')} for a snapshot came "
                f"too soon after another, or after {self._triggers.most} snapshots"
            )

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._measured_at + _TICKS_S:
            self._measured_at, self._frequency = now, self._clock.calibration().frequency
        try:
            reason = self._collector.look(
                min_wait_ns=self._triggers.min_wait_ns, texts=self._texts, frequency=self._frequency
            )
        except PttError as error:
            self._say_failure(error)
            return
        if reason is None:
            return
        if reason.kind == PTT_REASON_TEXT:
            self._make_for(f"user event of thread {reason.tid}")
        else:
            waited = duration(reason.wait_ns)
            self._make_for(f"thread {reason.tid} has waited {waited} for a lock")

    # ---- findings ------------------------------------------------------------------------------

    def _check(self) -> None:
        """Check the buffers from time to time: a snapshot with a new finding stays."""
        if self._candidate is not None:
            result = self._candidate.result()
            if result is not None:
                self._judge(result)
        elif time.monotonic() >= self._check_at and self._made < self._triggers.most:
            self._begin_check()

    def _begin_check(self) -> None:
        from nptltrace.recording.snapshots.candidates import Candidate

        began = time.monotonic()
        try:
            # A killed recorder may have left the last candidate.
            self._write(trace_directories.candidate_of(self._trace.path), "finding", force=True)
            self._candidate = Candidate(self._trace.path, began)
        except PttError as error:
            self._say_failure(error)
            self._check_at = time.monotonic() + _CHECK_APART_S

    def _judge(self, found: dict[str, str] | PttError) -> None:
        """Keep the candidate if it has a new finding."""
        candidate, self._candidate = self._candidate, None
        if candidate is None:
            return
        now = time.monotonic()
        self._check_at = now + max(_CHECK_APART_S, _CHECK_APART_TIMES * (now - candidate.began))
        if isinstance(found, PttError):
            # The next check would fail for the same reason.
            self._blind = True
            candidate.remove()
            talk(f"{found}; findings make no snapshots from now on")
            return
        new = {key: text for key, text in found.items() if key not in self._known}
        if not new or not self._may():
            candidate.remove()
            return
        self._known.update(new)
        path = self._free_path()
        try:
            candidate.keep(path, next(iter(new.values())))
        except (PttError, OSError, ValueError) as error:
            candidate.remove()
            self._say_failure(PttError(f"{path}: {one_line(error)}"))
            return
        self._made += 1
        self._free_at = now + _APART_S
        self._say(f"snapshot {path}: finding: {next(iter(new.values()))}")

    # ---- writing -------------------------------------------------------------------------------

    def _may(self) -> bool:
        """Return whether a reason leads to a snapshot now; count the reason if not."""
        may = self._made < self._triggers.most and time.monotonic() >= self._free_at
        self._skipped += not may
        return may

    def _make_for(self, reason: str) -> None:
        """Make a snapshot for a reason, unless there were enough."""
        if not self._may():
            return
        began = time.monotonic()
        try:
            path = self._free_path()
            stats = self._write(path, reason)
        except PttError as error:
            self._say_failure(error)
        else:
            self._made += 1
            self._say(f"snapshot {path}: {reason}: {_contents(stats)}")
        now = time.monotonic()
        self._free_at = now + max(_APART_S, _APART_TIMES * (now - began))

    def _free_path(self) -> Path:
        """Return the path of the next snapshot: beside the trace, with the next free number."""
        whole = self._trace.path
        suffix = ".ptt" if whole.suffix == ".ptt" else ""
        stem = whole.with_suffix("") if suffix else whole
        while True:
            self._number += 1
            path = trace_directories.beside(stem, "", f"-snapshot-{self._number}{suffix}")
            if not os.path.lexists(path):
                return path

    def _write(self, path: Path, reason: str, *, force: bool = False) -> Stats:
        """Write the buffers to a trace directory.

        Raises:
            PttError: The directory cannot be made, or something cannot be written. Then there is
                no directory.
        """
        directory, new = trace_directories.make(path, force=force)
        try:
            stats = self._fill(directory, reason)
        except (PttError, OSError) as error:
            trace_directories.remove(directory, whole=new)
            if isinstance(error, OSError):
                raise PttError(f"{path}: {error.strerror}") from None
            raise
        directory.close()
        return stats

    def _fill(self, directory: Directory, reason: str) -> Stats:
        watch = self.watch
        if watch is None:
            raise PttError("the processes are not known yet")
        uuid = _new_uuid()
        stats = self._collector.snapshot(directory.by_descriptor, uuid)
        if stats.write_error:
            raise PttError(f"{directory.path}: {os.strerror(stats.write_error)}")
        # What the buffers refer to: processes, threads, call sites.
        watch.sites()
        watch.step()
        watch.look_closely()
        with self._trace.directory.inside("info") as info:
            log = info.read("processes.jsonl")
        with directory.inside("info") as info, os.fdopen(info.append("processes.jsonl"), "wb") as f:
            f.write(log)
        facts = deepcopy(self._trace.facts)
        text = uuid.hex()
        facts |= {
            "uuid": f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}",
            # Readers take no wait at its end for a final wait.
            "derived_from": [self._trace.facts["uuid"]],
            "snapshot": reason,
            "session_dir": "",
        }
        facts |= watch.uncovered(children=self._options.children) | completeness(stats)
        stats.unjoined += self._trace.untraced()
        TraceDir(directory, facts).write(self._clock.calibration(), stats)
        return stats

    # ---- messages ------------------------------------------------------------------------------

    def _say(self, message: str) -> None:
        if self._options.verbosity >= 0:
            talk(message)

    def _say_failure(self, error: PttError) -> None:
        """Say once that there is no snapshot: a full disk does not become empty."""
        if not self._told_full:
            self._told_full = True
            talk(f"no snapshot: {error}; the recording goes on")


def _contents(stats: Stats) -> str:
    events = f"{stats.events} {plural(stats.events, 'event')}"
    return f"{events} ({stats.lost} lost, {size(stats.bytes)})"


def _new_uuid() -> bytes:
    """Return a random UUID, version 4 (RFC 9562, section 5.4)."""
    text = bytearray(os.urandom(16))
    text[6] = text[6] & 0x0F | 0x40
    text[8] = text[8] & 0x3F | 0x80
    return bytes(text)
