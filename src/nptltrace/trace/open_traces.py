"""Opened traces: files, clocks, processes and threads behind one reader.

Nothing here needs NumPy; `nptltrace.trace.reading` makes columns of the events.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace._dataclasses import dataclass
from nptltrace.errors import ClosedError, TraceFormatError, UsageError
from nptltrace.trace import posix_log
from nptltrace.trace.alignment import Clocked, align
from nptltrace.trace.info import Process, read_info
from nptltrace.trace.tsdl_reader import read_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nptltrace.trace.alignment import Alignment
    from nptltrace.trace.info import Info
    from nptltrace.trace.tsdl_reader import Metadata

__all__ = ["OpenTraces", "TraceFiles"]

_SIGNAL_BASE = 128  # a process killed by signal n has the exit status 128 + n
_GENERATION = re.compile(r"(?P<stream>.*?)(?:\.(?P<generation>\d+))?")


@dataclass(slots=True)
class TraceFiles:
    """One trace of a traceset.

    Attributes:
        path: Its directory.
        number: Its number in the traceset.
        metadata: Its metadata.
        info: The files beside the packets.
        streams: Stream number by the name of its files without generation.
        files: Names of the files that have been added.
    """

    path: Path
    number: int
    metadata: Metadata
    info: Info
    streams: dict[str, int]
    files: set[str]

    @property
    def running(self) -> bool:
        """Whether it is still being recorded."""
        return self.info.session.state == "running"

    @property
    def start_ticks(self) -> int | None:
        """When recording began, if the session says so."""
        return self.info.session.number("clock", "start")


class OpenTraces:
    """Traces opened for reading.

    Args:
        paths: Trace directories, and logs of POSIX trace streams.

    Raises:
        TraceFormatError: A path is not a trace.
        UsageError: They cannot be read as one traceset.

    Attributes:
        traces: The traces, in order.
        start_unix_ns: Unix time of time 0.
        alignment: How the traces' clocks were put together.
        learning: Held to learn what several threads may ask for at once.
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        if not paths:
            raise UsageError("no trace given")
        for path in paths:
            if not isinstance(path, str | os.PathLike):
                raise UsageError(
                    f"{path!r} is not the path of a trace; several are given one by one"
                )
        self._reader = libpttread.Reader()
        self._closed = False
        self.learning = RLock()
        self.traces: list[TraceFiles] = []
        self.alignment: Alignment
        self.start_unix_ns = 0
        self._processes: list[Process] = []
        self._traces_of: list[int] = []  # by number of the process
        self._known_threads: list[tuple[int, int]] = []
        self._paths = [Path(path) for path in paths]
        for path in paths:
            self._add(posix_log.as_trace(path) if posix_log.is_log(path) else Path(path))
        self.take_in()

    @property
    def reader(self) -> libpttread.Reader:
        """The native reader.

        Raises:
            ClosedError: The traceset is closed.
        """
        self.ensure_open()
        return self._reader

    def ensure_open(self) -> None:
        """Refuse to go on with a traceset that is closed.

        Raises:
            ClosedError: It is.
        """
        if self._closed:
            names = ", ".join(map(str, self._paths))
            raise ClosedError(f"the traceset {names} is closed; open it again to read it")

    @property
    def closed(self) -> bool:
        """Whether the traceset is closed."""
        return self._closed

    def close(self) -> None:
        """Close it. What it has returned stays valid; it may be closed twice."""
        self._closed = True
        self._reader.close()

    @property
    def running(self) -> bool:
        """Whether one of the traces is still being recorded."""
        return any(trace.running for trace in self.traces)

    def paths(self) -> Iterable[Path]:
        """Return the trace directories and logs, as they were given."""
        return self._paths

    def take_in(self) -> None:
        """Take in new files, and the events that the recorder has written since."""
        for trace in self.traces:
            if trace.files:
                trace.info = read_info(trace.path)
            self._add_processes(trace)
            self._add_files(trace)
        self.reader.index(running=self.running)
        self._set_clocks()

    # ---- files ----

    def _add(self, path: Path) -> None:
        """Add one trace, without its files."""
        metadata = read_metadata(path)
        for other in self.traces:
            if other.metadata.uuid == metadata.uuid:
                raise UsageError(f"{path} and {other.path} are the same trace")
        number = self.reader.add_trace(metadata.uuid.bytes)
        self.traces.append(TraceFiles(path, number, metadata, read_info(path), {}, set()))

    def new_files(self, trace: TraceFiles) -> list[tuple[str, int, str]]:
        """Return stream, generation and name of the stream files that have appeared, in order."""
        found: list[tuple[str, int, str]] = []
        try:
            with os.scandir(trace.path) as entries:
                for entry in entries:
                    name = entry.name
                    if name in trace.files or name == "metadata" or name.startswith("."):
                        continue
                    match = _GENERATION.fullmatch(name)
                    if match and entry.is_file():
                        found.append((match["stream"], int(match["generation"] or 0), name))
        except OSError as error:
            raise TraceFormatError(trace.path, None, error.strerror or "cannot be read") from None
        return sorted(found)

    def _add_files(self, trace: TraceFiles) -> None:
        """Add stream files that have appeared, generations in order."""
        for stream, _, name in self.new_files(trace):
            if stream not in trace.streams:
                trace.streams[stream] = self.reader.add_stream(trace.number)
            self.reader.add_file(trace.streams[stream], os.path.join(trace.path, name))  # noqa: PTH118 -- many
            trace.files.add(name)

    def _add_processes(self, trace: TraceFiles) -> None:
        """Give the reader what is known of processes."""
        for process in trace.info.processes.values():
            number = self.reader.add_process(trace.number, process.index, process.pid)
            for site, address in process.sites.items():
                if 0 < site < 65536 and 0 < address < 2**64:  # noqa: PLR2004 -- sizes of the fields
                    self.reader.set_site(number, site, address)
            if any(module.since for module in process.modules):
                self.reader.set_tenants(
                    number, (tenant.native() for tenant in process.map.tenants())
                )
        self._processes, self._traces_of = [], []

    def missing_events(self, trace: TraceFiles) -> int:
        """Return how many events a finished trace had besides those that its files have.

        Those of damaged parts do not count: they are reported with these. Where the oldest events
        were given up it is not known, and 0.
        """
        session = trace.info.session
        given_up = any(session.number(name) for name in ("overwritten_bytes", "removed_events"))
        if session.state != "complete" or given_up or self.damages():
            return 0
        events = session.number("events") or 0
        return max(events - self.reader.trace_info(trace.number).events, 0)

    def losses(self, trace: TraceFiles) -> dict[str, int]:
        """Return how many events of a trace are missing, by cause.

        Events that packets count and no cause of the recorder explains are `unknown`.
        """
        found = dict(trace.info.session.losses)
        unknown = self.reader.trace_info(trace.number).discarded - sum(found.values())
        return found | ({"unknown": unknown} if unknown > 0 else {})

    def lost_events(self) -> int:
        """Return how many events are known to be missing."""
        return sum(sum(self.losses(trace).values()) for trace in self.traces)

    def damages(self, start: int = 0) -> list[libpttread.Damage]:
        """Return the parts that could not be read so far."""
        return self.reader.damages(start)

    # ---- times ----

    def _set_clocks(self) -> None:
        """Put all traces on one time line that begins with the first of them."""
        alignment = align(
            [Clocked(t.path, t.metadata, t.info.session, self._origin(t)) for t in self.traces]
        )
        self.alignment = alignment
        self.start_unix_ns = alignment.start_unix_ns
        for trace, place in zip(self.traces, alignment.placements, strict=True):
            self.reader.set_clock(trace.number, place.frequency, place.origin, place.shift_ns)
        self.reader.key_ticks(on=alignment.one_clock)

    def _origin(self, trace: TraceFiles) -> int | None:
        """Return the tick at which a trace begins, None for an empty trace."""
        begin = self.reader.trace_info(trace.number).begin
        start = trace.start_ticks
        if begin == 2**64 - 1:
            return start
        return start if start is not None and 0 <= start <= begin else begin

    def ticks_at_start(self) -> int:
        """Return time 0 in ticks of the trace whose clock leads."""
        lead = self.alignment.placements[self.alignment.lead]
        return lead.origin - lead.shift_ns * lead.frequency // 10**9

    def time_of(self, trace: TraceFiles, ticks: int) -> int:
        """Convert a time of a trace from ticks to ns since the traceset's start."""
        place = self.alignment.placements[trace.number]
        return (ticks - place.origin) * 10**9 // place.frequency + place.shift_ns

    def ticks_of(self, trace: TraceFiles, ns: int) -> int:
        """Convert a time of the traceset from ns to ticks of a trace."""
        place = self.alignment.placements[trace.number]
        return (ns - place.shift_ns) * place.frequency // 10**9 + place.origin

    def first_ns(self) -> int | None:
        """Return the time of the first event that is on disk, None before there is an event."""
        keys = self.reader.key_range()
        return None if keys is None else self.reader.time_of_key(keys[0])

    def end_ns(self) -> int | None:
        """Return the time of the last event that is on disk, None before there is an event."""
        keys = self.reader.key_range()
        return None if keys is None else self.reader.time_of_key(keys[1])

    def part_ns(self) -> tuple[int | None, int | None]:
        """Return when the part of a recording that these traces are begins and ends.

        None stands for the beginning or end of the recording.
        """
        windows = [self.window_ns(trace) for trace in self.traces]
        begins, ends = (
            [ns for ns in side if ns is not None] for side in zip(*windows, strict=True)
        )
        whole = len(self.traces)
        return (
            min(begins) if len(begins) == whole else None,
            max(ends) if len(ends) == whole else None,
        )

    def window_ns(self, trace: TraceFiles) -> tuple[int | None, int | None]:
        """Return when the part of a recording that a trace is begins and ends, as `part_ns`."""
        first, last = (
            None if ticks is None else self.time_of(trace, ticks)
            for ticks in trace.info.session.window
        )
        return first, last

    def killed_ns(self) -> list[int | None]:
        """Return when each process was killed by a signal, None where it was not seen to be.

        Its threads lived until then, whatever their last events are.
        """
        return [
            ns if isinstance(process.status, int) and process.status > _SIGNAL_BASE else None
            for process, ns in zip(self.processes, self._seen_ns(), strict=True)
        ]

    def ended_ns(
        self, now_ns: Callable[[TraceFiles], int | None] = lambda _: None
    ) -> list[int | None]:
        """Return when each process, or else its recording, was seen to have ended.

        That is somewhat late. A process that left in an orderly way has an event of its own for it.

        Args:
            now_ns: Returns of a trace that is still recorded until when what goes on in it lasts
                so far; None of others.
        """
        recorded = [self._recorded_ns(trace, now_ns(trace)) for trace in self.traces]
        places = self.reader.processes()
        return [
            recorded[trace] if ns is None else ns
            for (trace, _, _), ns in zip(places, self._seen_ns(), strict=True)
        ]

    def _seen_ns(self) -> list[int | None]:
        """Return when each process, or the part there is, was seen to have ended, if it was."""
        last = self.part_ns()[1]
        seen = (process.end_unix_ns for process in self.processes)
        found = [None if ns is None else ns - self.start_unix_ns for ns in seen]
        return [ns if ns is None or last is None else min(ns, last) for ns in found]

    def _recorded_ns(self, trace: TraceFiles, now_ns: int | None) -> int | None:
        """Return the end of a trace, or of the recording that it is a part of; None if unknown."""
        info, session = self.reader.trace_info(trace.number), trace.info.session
        part = session.window[1]
        if part is not None or not info.packets:
            return None if part is None else self.time_of(trace, part)
        last = self.time_of(trace, info.end)
        if now_ns is not None:
            return max(last, now_ns)
        ended = session.number("end_unix_ns")
        return last if ended is None else max(last, ended - self.start_unix_ns)

    # ---- processes and threads ----

    @property
    def processes(self) -> list[Process]:
        """The process images by their number, the `process` of tables."""
        self._learn_processes()
        return self._processes

    def _learn_processes(self) -> None:
        """Take in the processes that the reader has found since."""
        if not self.reader.processes(len(self._processes)):
            return
        with self.learning:
            for trace, index, pid in self.reader.processes(len(self._processes)):
                listed = self.traces[trace].info.processes
                process = listed.get(index)
                if process is None and index == libpttread.ANY:
                    process = next((p for p in listed.values() if p.inner_pid == pid), None)
                self._processes.append(process or Process(index, pid=pid, inner_pid=pid))
                self._traces_of.append(trace)

    def trace_of(self, process: int) -> int:
        """Return the number of the trace that a process is from."""
        if process >= len(self._traces_of):
            self._learn_processes()
        return self._traces_of[process]

    def lock_types(self, process: int) -> list[str]:
        """Return what the user's own kinds of locks are called in a process, by number."""
        if process >= len(self.processes):
            return []
        return self.traces[self.trace_of(process)].info.session.lock_types

    def parents(self) -> dict[int, int]:
        """Return the processes that forked others, by these; by their numbers."""
        known = self.reader.processes(0)
        number_of = {(trace, index): number for number, (trace, index, _) in enumerate(known)}
        parents: dict[int, int] = {}
        for number, (trace, _, _) in enumerate(known):
            index = self.processes[number].parent
            parent = None if index is None else number_of.get((trace, index))
            if parent is not None and parent != number:
                parents[number] = parent
        return parents

    @property
    def thread_ids(self) -> list[tuple[int, int]]:
        """(process number, tid) of the threads by their number in the traceset."""
        if self.reader.thread_count() != len(self._known_threads):
            self._known_threads = self.reader.threads()
        return self._known_threads
