"""The ctypes face of libpttcollect: the structs of collect.h and one method a function."""

from __future__ import annotations

import ctypes
import errno
import os
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import TYPE_CHECKING, ClassVar

from nptltrace import _paths
from nptltrace.errors import PttError

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.record.settings.options import BufferOptions

__all__ = [
    "Collector",
    "CollectorError",
    "FaultEntry",
    "ProcessEntry",
    "Site",
    "Stats",
    "ThreadEntry",
    "Time",
]
__all__ += ["read_clock"]

_ABI = 2
_FLUSH = 1
_PROCESS_BATCH = 256
_SITE_BATCH = 4096
_THREAD_MAX = 32768
_FAULTS_MAX = 64
SITE_VOID = (1 << 64) - 1


class CollectorError(PttError):
    """The collector library could not do what it was asked for.

    Attributes:
        errno: The error number, positive.
    """

    def __init__(self, message: str, error: int) -> None:
        self.errno = error
        super().__init__(message)


class _Struct(Structure):
    """A struct whose fields mypy may look up."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> int: ...


class _Message(Structure):
    _fields_: ClassVar = [("text", c_char * 512)]


class _Options(Structure):
    _fields_: ClassVar = [
        ("segment", c_char_p),
        ("trace", c_char_p),
        ("budget", c_uint64),
        ("max_file_size", c_uint64),
        ("max_files", c_uint32),
        ("chunk_size", c_uint32),
        ("policy", c_uint32),
        ("when_full", c_uint32),
    ]


class Stats(_Struct):
    """Counts of a recording, as struct ptt_collector_stats.

    Attributes:
        unfinished: Records that their writers left unfinished, or that were damaged.
    """

    unfinished: int = 0

    _fields_: ClassVar = [
        ("events", c_uint64),
        ("packets", c_uint64),
        ("bytes", c_uint64),
        ("threads", c_uint64),
        ("lost_full", c_uint64),
        ("lost_closed", c_uint64),
        ("lost_threads", c_uint64),
        ("lost_write", c_uint64),
        ("lost_sites", c_uint64),
        ("overwritten", c_uint64),
        ("removed", c_uint64),
        ("wait_ns", c_uint64),
        ("chunks", c_uint32),
        ("free_chunks", c_uint32),
        ("freed_chunks", c_uint32),
        ("live_threads", c_uint32),
        ("write_error", c_int32),
        ("stopped", c_uint32),
        ("lost_processes", c_uint32),
        ("lost_real_time", c_uint64),
        ("without_site", c_uint64),
    ]

    @property
    def lost(self) -> int:
        """Events that are not in the trace, whatever the cause."""
        counted = self.lost_full + self.lost_closed + self.lost_threads + self.lost_write
        return counted + self.unfinished


class FaultEntry(_Struct):
    """A place of a shared buffer that held no record, as struct ptt_collector_fault."""

    _fields_: ClassVar = [
        ("word", c_uint64),
        ("words", c_uint64),
        ("kind", c_uint32),
        ("pid", c_uint32),
    ]


class Time(_Struct):
    """One reading of all clocks, as struct ptt_collector_time."""

    _fields_: ClassVar = [
        ("clock", c_uint64),
        ("monotonic_ns", c_uint64),
        ("unix_ns", c_int64),
        ("kind", c_uint32),
        ("spread_ns", c_uint32),
    ]


class ProcessEntry(_Struct):
    """An entry of the segment's process table, as struct ptt_collector_process.

    `pid` is what the process calls itself, `index` where its entry is, and `image` its number.
    """

    _fields_: ClassVar = [
        ("state", c_uint32),
        ("pid", c_uint32),
        ("ppid", c_uint32),
        ("parent", c_uint32),
        ("start", c_uint64),
        ("lost_threads", c_uint64),
        ("image", c_uint32),
        ("pid_namespace", c_uint32),
        ("index", c_uint32),
        ("reserved", c_uint32),
    ]


class ThreadEntry(_Struct):
    """A thread that is recorded now, as struct ptt_collector_thread."""

    _fields_: ClassVar = [
        ("pid", c_uint32),
        ("tid", c_uint32),
        ("process", c_uint32),
        ("index", c_uint32),
        ("serial", c_uint64),
    ]


class Site(_Struct):
    """An announced call site, as struct ptt_site; `process` is an image."""

    _fields_: ClassVar = [("address", c_uint64), ("process", c_uint32), ("id", c_uint32)]


class _SegmentHead(_Struct):
    """The first bytes of struct ptt_segment."""

    _fields_: ClassVar = [
        ("abi", c_uint8 * 16),
        ("size", c_uint64),
        ("chunk_size", c_uint32),
        ("chunk_count", c_uint32),
        ("thread_count", c_uint32),
        ("process_count", c_uint32),
        ("process_offset", c_uint64),
        ("thread_owner_offset", c_uint64),
        ("thread_offset", c_uint64),
        ("chunk_state_offset", c_uint64),
        ("chunk_offset", c_uint64),
        ("site_offset", c_uint64),
        ("policy", c_uint32),
        ("when_full", c_uint32),
        ("clock", c_uint32),
        ("recorder_pid", c_uint32),
        ("start_clock", c_uint64),
        ("start_unix_ns", c_int64),
        ("uuid", c_uint8 * 16),
    ]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(os.fspath(_paths.collector_library()), use_errno=False)
    if library.ptt_collector_abi() != _ABI:
        raise PttError(f"{_paths.collector_library()} does not fit this version of nptltrace")
    handle, message = c_void_p, POINTER(_Message)
    signatures = {
        "create": [POINTER(_Options), POINTER(handle), message],
        "create_shared": [POINTER(_Options), c_uint64, POINTER(handle), message],
        "faults": [handle, POINTER(FaultEntry), c_uint32],
        "attach": [POINTER(_Options), POINTER(handle), message],
        "pass": [handle, c_uint32, POINTER(Stats)],
        "wait": [handle, c_uint32],
        "close": [handle],
        "finish": [handle, POINTER(Stats)],
        "processes": [handle, POINTER(ProcessEntry), c_uint32],
        "process_gone": [handle, c_uint32],
        "threads": [handle, POINTER(ThreadEntry), c_uint32],
        "sites": [handle, POINTER(Site), c_uint32],
        "sites_taken": [handle, c_uint32],
        "read_clock": [c_uint32, POINTER(Time)],
    }
    for name, arguments in signatures.items():
        function = getattr(library, f"ptt_collector_{name}")
        function.argtypes = arguments
        function.restype = c_int
    library.ptt_collector_faults.restype = c_uint64
    library.ptt_collector_process_pid.argtypes = [handle, c_uint32]
    library.ptt_collector_process_pid.restype = c_uint32
    library.ptt_collector_destroy.argtypes = [handle]
    library.ptt_collector_destroy.restype = None
    library.ptt_collector_segment.argtypes = [handle]
    library.ptt_collector_segment.restype = POINTER(_SegmentHead)
    return library


_library: ctypes.CDLL | None = None


def _lib() -> ctypes.CDLL:
    global _library  # noqa: PLW0603 -- loaded once, and only if something is recorded
    if _library is None:
        _library = _load()
    return _library


def read_clock(kind: int = 0) -> Time:
    """Read all clocks at the same moment; kind 0 is the clock that a new recording would use."""
    now = Time()
    _lib().ptt_collector_read_clock(kind, byref(now))
    return now


class Collector:
    """Drains one segment into one trace directory. Used by the thread that made it.

    Args:
        segment: The segment file, which `attach` says to take over and which is made otherwise.
        trace: The trace directory.
        options: Sizes and policies.
        attach: Take over a segment whose recorder was killed.
    """

    def __init__(
        self, segment: Path, trace: Path, options: BufferOptions, *, attach: bool = False
    ) -> None:
        self._lib = _lib()
        self._handle = c_void_p()
        message = _Message()
        wanted = _Options(
            segment=os.fsencode(segment),
            trace=os.fsencode(trace),
            budget=options.budget,
            max_file_size=options.max_file_size,
            max_files=options.max_files,
            chunk_size=options.chunk_size,
            policy=int(options.policy),
            when_full=int(options.when_full),
        )
        status = self._begin(byref(wanted), byref(message), attach=attach)
        if status < 0:
            raise CollectorError(message.text.decode(errors="replace"), -status)
        self._head = self._lib.ptt_collector_segment(self._handle).contents
        self._sites = (Site * _SITE_BATCH)()
        self._processes = (ProcessEntry * _PROCESS_BATCH)()

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

    def drain(self, *, flush: bool = False) -> Stats:
        """Write what is ready; with `flush`, partly filled buffers too."""
        stats = Stats()
        self._lib.ptt_collector_pass(self._handle, _FLUSH if flush else 0, byref(stats))
        return stats

    def wait(self, seconds: float) -> None:
        """Sleep until a writer needs room, a signal comes, or the time is over."""
        self._lib.ptt_collector_wait(self._handle, max(1, int(seconds * 1000)))

    def close(self) -> None:
        """Tell writers that the recording is over."""
        self._lib.ptt_collector_close(self._handle)

    def finish(self) -> Stats:
        """Drain all that is left; after `close`."""
        stats = Stats()
        self._lib.ptt_collector_finish(self._handle, byref(stats))
        stats.unfinished = self.faults()[0]
        return stats

    def faults(self) -> tuple[int, list[FaultEntry]]:
        """Return how many places of a shared buffer held no record, and the first of them."""
        found = (FaultEntry * _FAULTS_MAX)()
        count = int(self._lib.ptt_collector_faults(self._handle, found, _FAULTS_MAX))
        return count, list(found[: min(count, _FAULTS_MAX)])

    def destroy(self) -> None:
        """Give everything back. May be called twice."""
        if self._handle.value is not None:
            del self._head  # lies in the mapping that goes now
            self._lib.ptt_collector_destroy(self._handle)
            self._handle = c_void_p()

    def processes(self) -> list[ProcessEntry]:
        """Return the process entries that have come or changed since the last call."""
        found: list[ProcessEntry] = []
        while True:
            n = self._lib.ptt_collector_processes(self._handle, self._processes, _PROCESS_BATCH)
            found += [ProcessEntry.from_buffer_copy(self._processes[i]) for i in range(n)]
            if n < _PROCESS_BATCH:
                return found

    def process_pid(self, index: int) -> int:
        """Return by which pid the process of an entry is known here; 0 if it does not run."""
        return int(self._lib.ptt_collector_process_pid(self._handle, index))

    def process_gone(self, index: int) -> None:
        """Say that the image of a process entry does not run any more."""
        self._lib.ptt_collector_process_gone(self._handle, index)

    def threads(self) -> list[ThreadEntry]:
        """Return the threads that have an entry now."""
        entries = (ThreadEntry * _THREAD_MAX)()
        n = self._lib.ptt_collector_threads(self._handle, entries, _THREAD_MAX)
        return list(entries[:n])

    def sites(self) -> list[tuple[int, int, int]]:
        """Return announced call sites, not yet taken: process, site id, address."""
        n = self._lib.ptt_collector_sites(self._handle, self._sites, _SITE_BATCH)
        return [(site.process, site.id, site.address) for site in self._sites[:n]]

    def sites_taken(self, count: int) -> None:
        """Say that the first `count` sites are on disk."""
        self._lib.ptt_collector_sites_taken(self._handle, count)

    @staticmethod
    def is_busy(error: CollectorError) -> bool:
        """Return whether an attach failed because the recorder is still at work."""
        return error.errno == errno.EBUSY
