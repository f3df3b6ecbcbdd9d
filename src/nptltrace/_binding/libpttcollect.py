"""libpttcollect, which drains a recording: one method a function; see `collect.h`.

A `Collector` is no `Handle`: only the thread that created it may end it, so `destroy` is called
there and nothing else ends it. The kernel marks what it holds when that thread dies before.
"""

from __future__ import annotations

import errno
import os
import time
from ctypes import byref, c_void_p
from struct import Struct

from nptltrace._binding.headers import collect as c
from nptltrace._binding.headers.ptt_abi import PTT_NO_PARENT, PTT_POLICY_LOOP, PTT_POLICY_UNTIL_FULL
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
# No processor has an event in less time, and none is larger.
_EVENT_NS, _EVENT_BYTES = 5, 4096
# To make a process takes as long as so many events at least.
_PROCESS_EVENTS = 2000
_COUNTS = (
    "lost_full", "lost_closed", "lost_threads", "lost_write", "lost_sites", "lost_real_time",
    "lost_reported", "lost_stalled", "without_site", "without_stack",
)  # fmt: skip
_PROCESSES = ("lost_processes", "unjoined")


class CollectorError(PttError):
    """The collector library could not do what it was asked for.

    Attributes:
        errno: The error number, positive.
    """

    def __init__(self, message: str, error: int) -> None:
        self.errno = error
        super().__init__(message)


class Stats(c.CollectorStats):
    """Counts of a recording.

    Attributes:
        unfinished: Records that their writers left unfinished, or that were damaged.
        untrue: Whether the program overwrote counts, so that nobody knows what was lost.
    """

    unfinished: int = 0
    untrue: bool = False

    @property
    def lost(self) -> int:
        """Events that are not in the trace, whatever the cause."""
        counted = self.lost_full + self.lost_closed + self.lost_threads + self.lost_write
        return counted + self.lost_reported + self.unfinished

    def distrust(self, policy: int, elapsed_ns: int) -> None:
        """Leave out what cannot be: most counts lie where wild stores of the program may hit.

        Args:
            policy: Of the recording.
            elapsed_ns: How long the recording took.
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
        if self.untrue:  # whatever was overwritten, these lie beside it
            self.lost_processes = self.unjoined = 0


class ThreadEntry(tuple[int, int, int, int, int]):
    """A thread entry that is in use, as plain numbers: there may be thousands.

    Attributes:
        tid: Its thread, by the id that it has in its PID namespace.
        process: The process image.
        identity: What distinguishes its thread from all others of the process image.
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
    global _library  # noqa: PLW0603 -- loaded once, and only if something is recorded
    if _library is None:
        version = ("ptt_collector_abi", c.PTT_COLLECT_ABI)
        _library = Library("libpttcollect.so", c.FUNCTIONS, version)
    return _library


def read_clock(kind: int = 0) -> c.CollectorTime:
    """Read all clocks at the same moment; kind 0 is the clock that a new recording would use."""
    now = c.CollectorTime()
    _lib().ptt_collector_read_clock(kind, byref(now))
    return now


class Collector:
    """Drains one segment into one trace directory. Used by the thread that made it.

    Args:
        segment: The segment file, which `attach` says to take over and which is made otherwise.
        trace: The trace directory.
        options: Sizes and policies, by the names that they have in C.
        attach: Take over a segment whose recorder was killed.
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
        self._head = c.Segment.from_address(self._lib.ptt_collector_segment(self._handle))
        self._sites = (c.Site * _SITE_BATCH)()
        self._processes = (c.CollectorProcess * _PROCESS_BATCH)()
        self._threads: Array[c.CollectorThread] | None = None  # made when they are asked for

    def _begin(self, options: object, message: object, *, attach: bool) -> int:
        """Make the collector and return a status."""
        begin = self._lib.ptt_collector_attach if attach else self._lib.ptt_collector_create
        return int(begin(options, byref(self._handle), message))

    @property
    def uuid(self) -> str:
        """The trace's UUID, in its usual form."""
        text = bytes(self._head.uuid).hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    @property
    def clock(self) -> int:
        """The kind of the trace's clock."""
        return int(self._head.clock)

    @property
    def start(self) -> tuple[int, int]:
        """When the segment was made: clock, and time of day in ns."""
        return int(self._head.start_clock), int(self._head.start_unix_ns)

    @property
    def buffers(self) -> tuple[int, int]:
        """Where in the segment the buffers begin, and how many bytes they are."""
        return int(self._head.chunk_offset), int(self._head.size - self._head.chunk_offset)

    def sched(self, pid: int) -> None:
        """Have the kernel record context switches of a process that is about to execute a program.

        Raises:
            CollectorError: The kernel does not, or does not allow it.
        """
        message = c.Message()
        status = self._lib.ptt_collector_sched(self._handle, pid, byref(message))
        if status < 0:
            raise CollectorError(message.text.decode(errors="replace"), -status)

    def drain(self, *, flush: bool = False) -> Stats:
        """Write what is ready; with `flush`, partly filled buffers too."""
        stats = Stats()
        self._lib.ptt_collector_pass(self._handle, c.PTT_PASS_FLUSH if flush else 0, byref(stats))
        return stats

    def wait(self, seconds: float) -> None:
        """Sleep until a writer needs room, a signal comes, or the time is over."""
        self._lib.ptt_collector_wait(self._handle, max(1, int(seconds * 1000)))

    def close(self) -> None:
        """Let writers know that the recording is over."""
        self._lib.ptt_collector_close(self._handle)

    def finish(self) -> Stats:
        """Drain all that is left; after `close`."""
        stats = Stats()
        self._lib.ptt_collector_finish(self._handle, byref(stats))
        stats.unfinished = self.faults()[0]
        stats.distrust(self._head.policy, time.time_ns() - self.start[1])
        return stats

    def faults(self) -> tuple[int, list[c.CollectorFault]]:
        """Return how many places of a shared buffer held no record, and the first of them."""
        faults = (c.CollectorFault * _FAULTS_MAX)()
        count = int(self._lib.ptt_collector_faults(self._handle, faults, _FAULTS_MAX))
        return count, list(faults[: min(count, _FAULTS_MAX)])

    def destroy(self) -> None:
        """Give everything back. May be called twice."""
        if self._handle.value is not None:
            del self._head  # lies in the mapping that goes now
            self._lib.ptt_collector_destroy(self._handle)
            self._handle = c_void_p()

    def processes(self) -> list[tuple[int, c.Process]]:
        """Return the process entries that have come or changed since the last call, by place."""
        entries: list[tuple[int, c.Process]] = []
        while True:
            n = self._lib.ptt_collector_processes(self._handle, self._processes, _PROCESS_BATCH)
            new = self._processes[:n]
            entries += [(entry.index, c.Process.from_buffer_copy(entry.entry)) for entry in new]
            if n < _PROCESS_BATCH:
                return entries

    def process_pid(self, index: int) -> int:
        """Return by which pid the process of an entry is known here; 0 if it does not run."""
        return int(self._lib.ptt_collector_process_pid(self._handle, index))

    def process_gone(self, index: int) -> None:
        """Note that the image of a process entry does not run any more."""
        self._lib.ptt_collector_process_gone(self._handle, index)

    def threads(self) -> list[ThreadEntry]:
        """Return the entries of threads that have not said that they end."""
        if self._threads is None:
            self._threads = (c.CollectorThread * _THREAD_MAX)()
        n = self._lib.ptt_collector_threads(self._handle, self._threads, _THREAD_MAX)
        used = memoryview(self._threads).cast("B")[: n * ThreadEntry.LAYOUT.size]
        return [ThreadEntry(entry) for entry in ThreadEntry.LAYOUT.iter_unpack(used)]

    def sites(self) -> list[tuple[int, int, int, int | None]]:
        """Return announced call sites and stacks, not yet taken.

        Each as process, number, address, and of a stack the number of its caller's, else None.
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
        """Return whether an attach failed because nothing can be got out of the segment."""
        return error.errno == errno.ENODATA


class SharedCollector(Collector):
    """Drains the one buffer of the handler `shared`.

    Args:
        segment: The segment file to make.
        trace: The trace directory.
        options: Files and policies, as there.
        size: Bytes of the buffer.
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
