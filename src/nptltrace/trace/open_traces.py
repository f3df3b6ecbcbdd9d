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
        path: Directory of the trace.
        number: Number of the trace in the traceset.
        metadata: The metadata.
        info: The files beside the packets.
        streams: Stream number by the name of the stream's files, without the generation.
        files: Names of the files that the reader has.
    """

    path: Path
    number: int
    metadata: Metadata
    info: Info
    streams: dict[str, int]
    files: set[str]

    @property
    def running(self) -> bool:
        """Whether the recording goes on."""
        return self.info.session.state == "running"

    @property
    def start_ticks(self) -> int | None:
        """When recording began, in ticks; None if the session does not say so."""
        return self.info.session.number("clock", "start")


class OpenTraces:
    """Traces opened for reading.

    Args:
        paths: Trace directories, and logs of POSIX trace streams.

    Raises:
        TraceFormatError: A path is not a trace.
        UsageError: The traces cannot be read as one traceset.

    Attributes:
        traces: The traces, in order.
        start_unix_ns: Unix time of time 0.
        alignment: The place of each trace on the common time line.
        learning: Lock for lazy results that several threads may ask for at once.
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
        """Refuse a closed traceset.

        Raises:
            ClosedError: The traceset is closed.
        """
        if self._closed:
            names = ", ".join(map(str, self._paths))
            raise ClosedError(f"the traceset {names} is closed; open it again to read it")

    @property
    def closed(self) -> bool:
        """Whether the traceset is closed."""
        return self._closed

    def close(self) -> None:
        """Close the traceset. Results stay valid. You can call this twice."""
        self._closed = True
        self._reader.close()

    @property
    def running(self) -> bool:
        """Whether the recording of a trace goes on."""
        return any(trace.running for trace in self.traces)

    def paths(self) -> Iterable[Path]:
        """Return the trace directories and logs, as the caller gave them."""
        return self._paths

    def take_in(self) -> None:
        """Take in new files and new events."""
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
        """Return stream, generation and name of each new stream file, in this order."""
        new: list[tuple[str, int, str]] = []
        try:
            with os.scandir(trace.path) as entries:
                for entry in entries:
                    name = entry.name
                    if name in trace.files or name == "metadata" or name.startswith("."):
                        continue
                    match = _GENERATION.fullmatch(name)
                    if match and entry.is_file():
                        new.append((match["stream"], int(match["generation"] or 0), name))
        except OSError as error:
            raise TraceFormatError(trace.path, None, error.strerror or "cannot be read") from None
        return sorted(new)

    def _add_files(self, trace: TraceFiles) -> None:
        """Add new stream files, the generations of a stream in order."""
        for stream, _, name in self.new_files(trace):
            if stream not in trace.streams:
                trace.streams[stream] = self.reader.add_stream(trace.number)
            self.reader.add_file(trace.streams[stream], os.path.join(trace.path, name))  # noqa: PTH118 -- many
            trace.files.add(name)

    def _add_processes(self, trace: TraceFiles) -> None:
        """Give the reader the processes of a trace, their call sites and modules."""
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
        """Return how many recorded events the files of a complete trace lack.

        The result is 0 if the number is unknown: if files are damaged, or if the recording gave up
        its oldest events. Damaged parts are reported by themselves.
        """
        session = trace.info.session
        given_up = any(session.number(name) for name in ("overwritten_bytes", "removed_events"))
        if session.state != "complete" or given_up or self.damages():
            return 0
        events = session.number("events") or 0
        return max(events - self.reader.trace_info(trace.number).events, 0)

    def losses(self, trace: TraceFiles) -> dict[str, int]:
        """Return the numbers of lost events of a trace by cause.

        Packets may count more lost events than the recorder. Their cause is `unknown`.
        """
        losses = dict(trace.info.session.losses)
        unknown = self.reader.trace_info(trace.number).discarded - sum(losses.values())
        return losses | ({"unknown": unknown} if unknown > 0 else {})

    def lost_events(self) -> int:
        """Return the number of lost events of all traces."""
        return sum(sum(self.losses(trace).values()) for trace in self.traces)

    def damages(self, start: int = 0) -> list[libpttread.Damage]:
        """Return the damaged parts that reading has met so far, from a number on."""
        return self.reader.damages(start)

    # ---- times ----

    def _set_clocks(self) -> None:
        """Put all traces on one time line, which begins with the first trace."""
        alignment = align(
            [Clocked(t.path, t.metadata, t.info.session, self._origin(t)) for t in self.traces]
        )
        self.alignment = alignment
        self.start_unix_ns = alignment.start_unix_ns
        for trace, place in zip(self.traces, alignment.placements, strict=True):
            self.reader.set_clock(trace.number, place.frequency, place.origin, place.shift_ns)
        self.reader.key_ticks(on=alignment.one_clock)

    def _origin(self, trace: TraceFiles) -> int | None:
        """Return the tick at the begin of a trace; None for an empty trace."""
        begin = self.reader.trace_info(trace.number).begin
        start = trace.start_ticks
        if begin == 2**64 - 1:
            return start
        return start if start is not None and 0 <= start <= begin else begin

    def ticks_at_start(self) -> int:
        """Return time 0 in ticks of the leading trace; see `Alignment.lead`."""
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
        """Return the time of the first event on disk; None if there is no event yet."""
        keys = self.reader.key_range()
        return None if keys is None else self.reader.time_of_key(keys[0])

    def end_ns(self) -> int | None:
        """Return the time of the last event on disk; None if there is no event yet."""
        keys = self.reader.key_range()
        return None if keys is None else self.reader.time_of_key(keys[1])

    def part_ns(self) -> tuple[int | None, int | None]:
        """Return begin and end, in ns, if the traces are a part of a recording.

        None stands for the beginning or the end of the recording.
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
        """Return begin and end of a trace that is a part of a recording, as `part_ns`."""
        first, last = (
            None if ticks is None else self.time_of(trace, ticks)
            for ticks in trace.info.session.window
        )
        return first, last

    def killed_ns(self) -> list[int | None]:
        """Return when a signal killed each process; None if the recorder saw no such end.

        The threads of a killed process lived until then, also without late events.
        """
        return [
            ns if isinstance(process.status, int) and process.status > _SIGNAL_BASE else None
            for process, ns in zip(self.processes, self._seen_ns(), strict=True)
        ]

    def ended_ns(
        self, now_ns: Callable[[TraceFiles], int | None] = lambda _: None
    ) -> list[int | None]:
        """Return when the recorder saw the end of each process, or else the end of its recording.

        The recorder sees the end a little late. A process that exits has an event at its end.

        Args:
            now_ns: Returns the present time of a trace that is still recorded, in ns since the
                traceset's start; None for a complete trace.
        """
        recorded = [self._recorded_ns(trace, now_ns(trace)) for trace in self.traces]
        places = self.reader.processes()
        return [
            recorded[trace] if ns is None else ns
            for (trace, _, _), ns in zip(places, self._seen_ns(), strict=True)
        ]

    def _seen_ns(self) -> list[int | None]:
        """Return when the recorder saw the end of each process, at most the end of the traces."""
        last = self.part_ns()[1]
        unix = (process.end_unix_ns for process in self.processes)
        seen = [None if ns is None else ns - self.start_unix_ns for ns in unix]
        return [ns if ns is None or last is None else min(ns, last) for ns in seen]

    def _recorded_ns(self, trace: TraceFiles, now_ns: int | None) -> int | None:
        """Return the end of a trace, or of its recording if that is later; None if unknown."""
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
        """Take in new processes of the reader."""
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
        """Return the number of the trace of a process."""
        if process >= len(self._traces_of):
            self._learn_processes()
        return self._traces_of[process]

    def lock_types(self, process: int) -> list[str]:
        """Return the names of the user's own kinds of locks in a process, by number."""
        if process >= len(self.processes):
            return []
        return self.traces[self.trace_of(process)].info.session.lock_types

    def parents(self) -> dict[int, int]:
        """Return the number of the parent of each forked process, by the number of the process."""
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
