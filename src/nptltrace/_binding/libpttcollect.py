"""libpttcollect, which drains a recording: one method for each function; see `collect.h`.

A `Collector` is not a `Handle`: only the thread that created it may destroy it, so that thread
calls `destroy`. If the thread dies first, the kernel marks the locks that it held.
"""

from __future__ import annotations

import errno
import os
import time
from ctypes import byref, c_void_p
from struct import Struct

from nptltrace._binding.headers import collect as c
from nptltrace._binding.headers.ptt_abi import (
    PTT_NO_PARENT,
    PTT_POLICY_LOOP,
    PTT_POLICY_UNTIL_FULL,
    Process,
    Segment,
)
from nptltrace._binding.library import Library
from nptltrace.errors import PttError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from ctypes import Array
    from pathlib import Path


__all__ = [
    "Collector", "CollectorError", "SharedCollector", "Stats", "ThreadEntry", "read_clock",
]  # fmt: skip

_PROCESS_BATCH = 256
_SITE_BATCH = 4096
_THREAD_MAX = 32768
_FAULTS_MAX = 64
# Bounds: a processor needs at least 5 ns for an event, and an event has at most 4096 bytes.
_EVENT_NS, _EVENT_BYTES = 5, 4096
# The creation of a process takes at least as long as this many events.
_PROCESS_EVENTS = 2000
_COUNTS = (
    "lost_full", "lost_closed", "lost_threads", "lost_write", "lost_sites", "lost_real_time",
    "lost_reported", "lost_stalled", "without_site", "without_stack",
)  # fmt: skip
_PROCESSES = ("lost_processes", "unjoined")


class CollectorError(PttError):
    """A function of the collector library failed.

    Attributes:
        errno: The error number, positive.
    """

    def __init__(self, message: str, error: int) -> None:
        self.errno = error
        super().__init__(message)


class Stats(c.CollectorStats):
    """Counts of a recording.

    Attributes:
        unfinished: Number of unfinished and damaged records.
        untrue: The program overwrote counts, so the number of lost events is unknown.
    """

    unfinished: int = 0
    untrue: bool = False

    @property
    def lost(self) -> int:
        """Number of events that are not in the trace, of all causes."""
        counted = self.lost_full + self.lost_closed + self.lost_threads + self.lost_write
        return counted + self.lost_reported + self.unfinished

    def distrust(self, policy: int, elapsed_ns: int) -> None:
        """Set impossible counts to 0: wild stores of the program may have overwritten them.

        Args:
            policy: The full policy of the recording.
            elapsed_ns: Duration of the recording.
        """
        if policy != PTT_POLICY_LOOP:
            self.overwritten = 0
        if policy != PTT_POLICY_UNTIL_FULL:
            self.stopped = 0
        most = max(1, elapsed_ns) * (os.cpu_count() or 1) // _EVENT_NS
        limits = dict.fromkeys(_COUNTS, most)
        limits |= dict.fromkeys(_PROCESSES, most // _PROCESS_EVENTS)
        limits["overwritten"] = most * _EVENT_BYTES
        for name, limit in limits.items():
            if getattr(self, name) > limit:
                setattr(self, name, 0)
                self.untrue = True
        if self.untrue:  # these counts lie next to all others
            self.lost_processes = self.unjoined = 0


class ThreadEntry(tuple[int, int, int, int, int]):
    """An entry of a thread, as a tuple of numbers: there may be thousands of entries.

    Attributes:
        tid: Id of the thread in its PID namespace.
        process: Number of the process image.
        identity: Distinguishes the thread from all other threads of the process image.
    """

    __slots__ = ()
    LAYOUT = Struct("=IIIIQ")  # struct ptt_collector_thread

    @property
    def tid(self) -> int:
        """The thread's id."""
        return self[1]

    @property
    def process(self) -> int:
        """The number of the process image."""
        return self[2]

    @property
    def identity(self) -> tuple[int, int, int]:
        """The id, the entry and the serial number in it."""
        return self[1], self[3], self[4]


_library: Library | None = None


def _lib() -> Library:
    global _library  # noqa: PLW0603 -- loaded once, on demand
    if _library is None:
        version = ("ptt_collector_abi", c.PTT_COLLECT_ABI)
        _library = Library("libpttcollect.so", c.FUNCTIONS, version)
    return _library


def read_clock(kind: int = 0) -> c.CollectorTime:
    """Read all clocks at the same moment; kind 0 stands for the clock of new recordings."""
    now = c.CollectorTime()
    _lib().ptt_collector_read_clock(kind, byref(now))
    return now


class Collector:
    """Drains a segment into a trace directory. Only the thread that created it may use it.

    Args:
        segment: The segment file to create, or with `attach` to take over.
        trace: The trace directory.
        options: Sizes and policies: fields of `struct ptt_collector_options`.
        attach: Take over the segment of a killed recorder.

    Raises:
        CollectorError: The segment cannot be created or taken over.
    """

    def __init__(
        self, segment: Path, trace: Path, options: Mapping[str, int], *, attach: bool = False
    ) -> None:
        self._lib = _lib()
        self._handle = c_void_p()
        message = c.Message()
        wanted = c.CollectorOptions(
            segment=os.fsencode(segment),
            trace=os.fsencode(trace),
            **options,
        )
        status = self._begin(byref(wanted), byref(message), attach=attach)
        if status < 0:
            raise CollectorError(message.text.decode(errors="replace"), -status)
        self._head = Segment.from_address(self._lib.ptt_collector_segment(self._handle))
        self._sites = (c.Site * _SITE_BATCH)()
        self._processes = (c.CollectorProcess * _PROCESS_BATCH)()
        self._threads: Array[c.CollectorThread] | None = None  # large; created on demand

    def _begin(self, options: object, message: object, *, attach: bool) -> int:
        """Create the collector; return 0, or a negated error number."""
        begin = self._lib.ptt_collector_attach if attach else self._lib.ptt_collector_create
        return int(begin(options, byref(self._handle), message))

    @property
    def uuid(self) -> str:
        """The UUID of the trace as text (RFC 9562)."""
        text = bytes(self._head.uuid).hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    @property
    def clock(self) -> int:
        """The kind of the trace's clock."""
        return int(self._head.clock)

    @property
    def start(self) -> tuple[int, int]:
        """Creation time of the segment: value of the trace's clock, and Unix time in ns."""
        return int(self._head.start_clock), int(self._head.start_unix_ns)

    @property
    def buffers(self) -> tuple[int, int]:
        """Offset of the buffers in the segment, and their size in bytes."""
        return int(self._head.chunk_offset), int(self._head.size - self._head.chunk_offset)

    def sched(self, pid: int) -> None:
        """Make the kernel record the context switches of a process that is about to call exec.

        Raises:
            CollectorError: The kernel cannot do this, or does not allow it; perf_event_open(2).
        """
        message = c.Message()
        status = self._lib.ptt_collector_sched(self._handle, pid, byref(message))
        if status < 0:
            raise CollectorError(message.text.decode(errors="replace"), -status)

    def drain(self, *, flush: bool = False) -> Stats:
        """Write the full buffers; with `flush`, partly filled buffers, too. Return the counts."""
        stats = Stats()
        self._lib.ptt_collector_pass(self._handle, c.PTT_PASS_FLUSH if flush else 0, byref(stats))
        return stats

    def wait(self, seconds: float) -> None:
        """Sleep until a writer needs room, a signal comes, or the time is over."""
        self._lib.ptt_collector_wait(self._handle, max(1, int(seconds * 1000)))

    def look(
        self, *, min_wait_ns: int, texts: bytes | None, frequency: int
    ) -> c.CollectorReason | None:
        """Look in the new events of a flight recorder for a reason to make a snapshot.

        Args:
            min_wait_ns: A wait for a lock of this time or longer is a reason; 0 = it is not.
            texts: Beginnings of texts of user events, each with a NUL, and a NUL behind the last.
            frequency: Frequency of the clock, in Hz.

        Returns:
            The first reason, or None.

        Raises:
            CollectorError: There is no memory for notes about the buffers, or the recording is no
                flight recorder.
        """
        alarm = c.CollectorAlarm(min_wait_ns=min_wait_ns, frequency=frequency, texts=texts)
        reason = c.CollectorReason()
        found = self._lib.ptt_collector_look(self._handle, byref(alarm), byref(reason))
        if found < 0:
            raise CollectorError(f"cannot look for a reason: {os.strerror(-found)}", -found)
        return reason if found else None

    def snapshot(self, trace: Path, uuid: bytes) -> Stats:
        """Write the buffers of a flight recorder as a trace of its own, and go on.

        Args:
            trace: The trace directory.
            uuid: The UUID of the trace, 16 bytes.

        Raises:
            CollectorError: There is no memory for a copy, or no such directory.
        """
        message, stats = c.Message(), Stats()
        status = self._lib.ptt_collector_snapshot(
            self._handle, os.fsencode(trace), uuid, byref(stats), byref(message)
        )
        if status < 0:
            raise CollectorError(message.text.decode(errors="replace"), -status)
        stats.distrust(self._head.policy, time.time_ns() - self.start[1])
        return stats

    def turn(self, trace: Path) -> None:
        """Write into another trace directory from now on, and leave the files so far.

        Args:
            trace: The directory, without stream files.

        Raises:
            CollectorError: There is no such directory, or the collector has other files as well.
        """
        message = c.Message()
        status = self._lib.ptt_collector_turn(self._handle, os.fsencode(trace), byref(message))
        if status < 0:
            raise CollectorError(message.text.decode(errors="replace"), -status)

    def close(self) -> None:
        """Tell the writers that the recording is over."""
        self._lib.ptt_collector_close(self._handle)

    def finish(self) -> Stats:
        """Drain all remaining events and return the counts; call `close` before."""
        stats = Stats()
        self._lib.ptt_collector_finish(self._handle, byref(stats))
        stats.unfinished = self.faults()[0]
        stats.distrust(self._head.policy, time.time_ns() - self.start[1])
        return stats

    def faults(self) -> tuple[int, list[c.CollectorFault]]:
        """Return the number of places in a shared buffer without a record, and the first places."""
        faults = (c.CollectorFault * _FAULTS_MAX)()
        count = int(self._lib.ptt_collector_faults(self._handle, faults, _FAULTS_MAX))
        return count, list(faults[: min(count, _FAULTS_MAX)])

    def destroy(self) -> None:
        """Destroy the collector. A second call does nothing."""
        if self._handle.value is not None:
            del self._head  # it points into the mapping that is removed
            self._lib.ptt_collector_destroy(self._handle)
            self._handle = c_void_p()

    def processes(self) -> list[tuple[int, Process]]:
        """Return (place, entry) of the process entries that changed since the last call."""
        entries: list[tuple[int, Process]] = []
        while True:
            n = self._lib.ptt_collector_processes(self._handle, self._processes, _PROCESS_BATCH)
            new = self._processes[:n]
            entries += [(entry.index, Process.from_buffer_copy(entry.entry)) for entry in new]
            if n < _PROCESS_BATCH:
                return entries

    def process_pid(self, index: int) -> int:
        """Return the pid of the process of an entry in our PID namespace; 0 if it does not run."""
        return int(self._lib.ptt_collector_process_pid(self._handle, index))

    def process_gone(self, index: int) -> None:
        """Note that the process image of an entry has ended."""
        self._lib.ptt_collector_process_gone(self._handle, index)

    def threads(self) -> list[ThreadEntry]:
        """Return the entries of threads that have not reported their end."""
        if self._threads is None:
            self._threads = (c.CollectorThread * _THREAD_MAX)()
        n = self._lib.ptt_collector_threads(self._handle, self._threads, _THREAD_MAX)
        used = memoryview(self._threads).cast("B")[: n * ThreadEntry.LAYOUT.size]
        return [ThreadEntry(entry) for entry in ThreadEntry.LAYOUT.iter_unpack(used)]

    def sites(self) -> list[tuple[int, int, int, int | None]]:
        """Return the announced call sites and frames of stacks that are not yet on disk.

        Returns:
            Process, number, address, and for a frame the number of its caller's frame, else None.
        """
        n = self._lib.ptt_collector_sites(self._handle, self._sites, _SITE_BATCH)
        return [
            (
                site.process,
                site.id,
                site.address,
                None if site.parent == PTT_NO_PARENT else site.parent,
            )
            for site in self._sites[:n]
        ]

    def sites_taken(self, count: int) -> None:
        """Note that the first `count` sites are on disk."""
        self._lib.ptt_collector_sites_taken(self._handle, count)

    @staticmethod
    def is_busy(error: CollectorError) -> bool:
        """Return whether an attach failed because the recorder is still at work."""
        return error.errno == errno.EBUSY

    @staticmethod
    def is_damaged(error: CollectorError) -> bool:
        """Return whether an attach failed because the segment is damaged beyond use."""
        return error.errno == errno.ENODATA


class SharedCollector(Collector):
    """Drains the single buffer of the handler `shared`.

    Args:
        segment: The segment file to create.
        trace: The trace directory.
        options: Files and policies; see `Collector`.
        size: Size of the buffer in bytes.
    """

    def __init__(
        self, segment: Path, trace: Path, options: Mapping[str, int], *, size: int
    ) -> None:
        self._size = size
        super().__init__(segment, trace, options)

    def _begin(self, options: object, message: object, *, attach: bool) -> int:
        if attach:
            return super()._begin(options, message, attach=attach)
        create = self._lib.ptt_collector_create_shared
        return int(create(options, self._size, byref(self._handle), message))
