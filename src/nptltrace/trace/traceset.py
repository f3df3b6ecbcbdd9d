"""Opens traces for reading: files, clocks, processes and threads behind one reader.

Nothing here needs NumPy; `nptltrace.trace.reading` makes columns of the events.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path, PurePath
from threading import RLock
from typing import TYPE_CHECKING, Any

from nptltrace._binding import libpttread, libpttread_text
from nptltrace._dataclasses import dataclass
from nptltrace._escaping import readable
from nptltrace._units import plural
from nptltrace.errors import ClosedError, PttError, TraceFormatError, UsageError
from nptltrace.trace import posix_log
from nptltrace.trace.alignment import Clocked, align
from nptltrace.trace.code.call_site import ENTRY
from nptltrace.trace.info import Process, read_info
from nptltrace.trace.symbols.gil import find_gils
from nptltrace.trace.threads import ALL, ThreadNames, thread_names
from nptltrace.trace.tsdl_reader import read_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nptltrace.trace.alignment import Alignment
    from nptltrace.trace.info import Info
    from nptltrace.trace.objects.conditions import Condition
    from nptltrace.trace.objects.semaphores import Semaphores, Use
    from nptltrace.trace.symbols.frames import ChooseSites, FindSiteUses
    from nptltrace.trace.tsdl_reader import Metadata

__all__ = ["BEFORE", "TraceFiles", "Traceset"]

# Of a trace that was cut out of another: the events that led to its beginning.
BEFORE = "info/before"
_RECORDS = 1  # the stream class of the handlers shared and file
_BATCH = 16384
_SEARCHED = 1 << 26  # bytes of packets, where not all need to be looked at
_SIGNAL_BASE = 128  # a process killed by signal n has the exit status 128 + n
_COMM_MAX = 15  # bytes of a name that the kernel keeps
_GENERATION = re.compile(r"(?P<stream>.*?)(?:\.(?P<generation>\d+))?")


@dataclass(slots=True)
class TraceFiles:
    """One trace of a traceset.

    Attributes:
        path: Its directory.
        number: Its number in the traceset.
        metadata: Its metadata.
        info: What stands beside the packets.
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


class Traceset:
    """Traces opened for reading.

    Args:
        paths: Trace directories, and logs of POSIX trace streams.

    Raises:
        TraceFormatError: One of them is not a trace.
        UsageError: They cannot be read as one.

    Attributes:
        traces: The traces, in order.
        start_unix_ns: Unix time of time 0.
        alignment: How the traces' clocks were put together.
        thread_names: Threads by their events, as far as `learn_threads` has looked.
        notes: Further remarks, of whoever works with the traces; see `remarks`.
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        if not paths:
            raise UsageError("no trace given")
        self._reader = libpttread.Reader()
        self._closed = False
        self._learning = RLock()  # held to learn what several threads may ask for at once
        self.traces: list[TraceFiles] = []
        self.alignment: Alignment
        self.start_unix_ns = 0
        self.thread_names = ThreadNames()
        self.notes: list[str] = []
        self._processes: list[Process] = []
        self._traces_of: list[int] = []  # by number of the process
        self._known_threads: list[tuple[int, int]] = []
        self._searched: (
            tuple[libpttread.Cursor, libpttread_text.Names, set[tuple[int, int]]] | None
        ) = None
        self._looked = 0  # how many bytes `thread_names` is from
        self._before: list[tuple[TraceFiles, Traceset]] | None = None
        self._names: dict[tuple[int, int], str] = {}  # of threads that were asked for, by turn
        self._semaphores: Semaphores | None = None
        self._purposes: list[tuple[int, int, bool, int]] | None = None
        self._uses: list[Use] | None = None
        self._conditions: dict[int, dict[int, Condition]] | None = None
        self._gils: dict[int, tuple[int, ...]] = {}
        self._choose: ChooseSites | None = None
        self._find_uses: FindSiteUses | None = None
        # Of each process the call sites that were looked at, and of which a use is known.
        self._site_uses: dict[int, tuple[set[int], list[tuple[int, int]]]] = {}
        self._chosen: dict[int, dict[int, int]] = {}  # call sites by process and stack
        self._chosen_of: dict[int, int] = {}  # from how many stacks of each process
        for path in paths:
            if not isinstance(path, str | os.PathLike):
                raise UsageError(
                    f"{path!r} is not the path of a trace; several are given one by one"
                )
        self._given = [Path(path) for path in paths]
        for path in paths:
            self._add(posix_log.as_trace(path) if posix_log.is_log(path) else Path(path))
        self._take_in()

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
            names = ", ".join(map(str, self._given))
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

    def _add(self, path: Path) -> None:
        """Add one trace, without its files."""
        metadata = read_metadata(path)
        for other in self.traces:
            if other.metadata.uuid == metadata.uuid:
                raise UsageError(f"{path} and {other.path} are the same trace")
        number = self.reader.add_trace(metadata.uuid.bytes)
        self.traces.append(TraceFiles(path, number, metadata, read_info(path), {}, set()))

    def refresh(self) -> None:
        """Take in what has been written since. No other thread may read meanwhile."""
        self._take_in()

    def describe_anew(self, metadata: Iterable[Metadata]) -> None:
        """Take in what the recorders now say of the traces, and what has been written since.

        Args:
            metadata: The metadata of each trace as they are now: at the end of a recording it is
                known how fast its clock was.
        """
        for trace, described in zip(self.traces, metadata, strict=True):
            trace.metadata = described
        self._take_in()

    def _take_in(self) -> None:
        for trace in self.traces:
            if trace.files:
                trace.info = read_info(trace.path)
            self._add_processes(trace)
            self._add_files(trace)
        self.reader.index(running=self.running)
        self._looked = 0
        self._names = {}
        self._semaphores = self._purposes = self._uses = self._conditions = None
        self._gils.clear()
        self._before = None
        self._set_clocks()
        self._choose_sites()

    def choose_sites(self, choose: ChooseSites, uses: FindSiteUses | None = None) -> None:
        """Have events with a stack come from a call site that is chosen from it, now and later.

        Args:
            choose: Returns call sites by numbers of stacks, where they are others than recorded.
            uses: Returns those of some call sites that lie in a wrapper, or where threads sleep.
        """
        self._choose, self._find_uses = choose, uses
        self._site_uses.clear()
        self._chosen_of.clear()
        self._choose_sites()

    def site_uses(self) -> Iterator[tuple[int, int, int]]:
        """Yield process, call site and use of those that have one: `pttmodel.PTT_SITE_…`."""
        if self._find_uses is None:
            return
        for number, process in enumerate(self.processes):
            with self._learning:
                asked, found = self._site_uses.setdefault(number, (set(), []))
                new = {*process.recorded, *self.chosen_sites(number)} - asked
                found += self._find_uses(number, new)
                asked |= new
            for site, use in found:
                yield number, site, use

    def chosen_site(self, process: int, stack: int) -> int:
        """Return the call site that was chosen from a stack, 0 where it is as recorded."""
        return self._chosen.get(process, {}).get(stack, 0)

    def chosen_sites(self, process: int) -> Iterable[int]:
        """Return all call sites that were chosen from stacks of a process."""
        return self._chosen.get(process, {}).values()

    def _choose_sites(self) -> None:
        for number, process in enumerate(self.processes):
            if self._choose is not None and len(process.stacks) != self._chosen_of.get(number, 0):
                self._chosen_of[number] = len(process.stacks)
                chosen = self._choose(number, process)
                if chosen != self._chosen.get(number, {}):
                    self._chosen[number] = chosen
                    self.reader.set_stack_sites(number, chosen)

    def _add_processes(self, trace: TraceFiles) -> None:
        """Give the reader what is known of processes."""
        for process in trace.info.processes.values():
            number = self.reader.add_process(trace.number, process.index, process.pid)
            for site, address in process.sites.items():
                if 0 < site < 65536 and 0 < address < 2**64:  # noqa: PLR2004 -- sizes of the fields
                    self.reader.set_site(number, site, address)
            if any(module.since for module in process.modules):
                self.reader.set_tenants(number, (one.native() for one in process.map.tenants()))
        self._processes, self._traces_of = [], []

    def _add_files(self, trace: TraceFiles) -> None:
        """Add stream files that have appeared, generations in order."""
        for stream, _, name in self.new_files(trace):
            if stream not in trace.streams:
                trace.streams[stream] = self.reader.add_stream(trace.number)
            self.reader.add_file(trace.streams[stream], os.path.join(trace.path, name))  # noqa: PTH118 -- many
            trace.files.add(name)

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

    def _set_clocks(self) -> None:
        """Put all traces on one time line that begins with the first of them."""
        found = align(
            [Clocked(t.path, t.metadata, t.info.session, self._origin(t)) for t in self.traces]
        )
        self.alignment = found
        self.start_unix_ns = found.start_unix_ns
        for trace, place in zip(self.traces, found.placements, strict=True):
            self.reader.set_clock(trace.number, place.frequency, place.origin, place.shift_ns)
        self.reader.key_ticks(on=found.one_clock)

    def ticks_at_start(self) -> int:
        """Return time 0 in ticks of the trace whose clock leads."""
        lead = self.alignment.placements[self.alignment.lead]
        return lead.origin - lead.shift_ns * lead.frequency // 10**9

    def losses(self, trace: TraceFiles) -> dict[str, int]:
        """Return how many events of a trace are missing, by cause.

        What the packets say and the recorder does not know the cause of is `unknown`.
        """
        found = dict(trace.info.session.losses)
        unknown = self.reader.trace_info(trace.number).discarded - sum(found.values())
        return found | ({"unknown": unknown} if unknown > 0 else {})

    def lost_events(self) -> int:
        """Return how many events are known to be missing."""
        return sum(sum(self.losses(trace).values()) for trace in self.traces)

    def first_ns(self) -> int | None:
        """Return the time of the first event that is on disk, None before there is one."""
        found = self.reader.key_range()
        return None if found is None else self.reader.time_of_key(found[0])

    def end_ns(self) -> int | None:
        """Return the time of the last event that is on disk, None before there is one."""
        found = self.reader.key_range()
        return None if found is None else self.reader.time_of_key(found[1])

    def identity(self, use: str) -> bytes:
        """Return 32 bytes that are others when the traces are others.

        Args:
            use: What they are for; others for another use.
        """
        from hashlib import sha256

        found = sha256(use.encode())
        # A recording that was followed has its processes and threads in the order they came in.
        found.update(repr((self.reader.processes(0), self.thread_ids)).encode())
        found.update(
            repr(sorted((n, sorted(of.items())) for n, of in self._chosen.items())).encode()
        )
        for trace in self.traces:
            found.update(trace.metadata.uuid.bytes)
            beside = ("metadata", "info/session.json", "info/processes.jsonl")
            for name in sorted([*trace.files, *beside]):
                try:
                    size = (trace.path / name).stat().st_size
                except OSError:
                    size = -1
                found.update(f"{name} {size}\n".encode("utf-8", "surrogateescape"))
        return found.digest()

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
            None if ticks is None else self._time_of(trace, ticks)
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

        That is somewhat late: a process that left in an orderly way has said so itself.

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
        """Return until when a trace, or the recording that it is a part of, goes; if known."""
        info, session = self.reader.trace_info(trace.number), trace.info.session
        part = session.window[1]
        if part is not None or not info.packets:
            return None if part is None else self._time_of(trace, part)
        last = self._time_of(trace, info.end)
        if now_ns is not None:
            return max(last, now_ns)
        ended = session.number("end_unix_ns")
        return last if ended is None else max(last, ended - self.start_unix_ns)

    def _time_of(self, trace: TraceFiles, ticks: int) -> int:
        """Return a time of a trace in the time of the traceset."""
        place = self.alignment.placements[trace.number]
        return (ticks - place.origin) * 10**9 // place.frequency + place.shift_ns

    def ticks_of(self, trace: TraceFiles, ns: int) -> int:
        """Return a time of the traceset as one of a trace."""
        place = self.alignment.placements[trace.number]
        return (ns - place.shift_ns) * place.frequency // 10**9 + place.origin

    def before(self) -> list[tuple[TraceFiles, Traceset]]:
        """Return for traces that were cut out of others the events that led to their beginnings.

        They are in no other way a part of the traceset. Times are those of the traceset.
        """
        if self._before is None:
            self._before = []
            for trace in self.traces:
                path = trace.path / BEFORE
                with suppress(PttError, OSError):
                    if (path / "metadata").is_file():
                        early = Traceset(path)
                        place = self.alignment.placements[trace.number]
                        early.reader.set_clock(0, place.frequency, place.origin, place.shift_ns)
                        self._before.append((trace, early))
        return self._before

    def _origin(self, trace: TraceFiles) -> int | None:
        """Return the tick at which a trace begins, None for one that is empty."""
        begin = self.reader.trace_info(trace.number).begin
        start = trace.start_ticks
        if begin == 2**64 - 1:
            return start
        return start if start is not None and 0 <= start <= begin else begin

    # ---- processes and threads ----

    @property
    def processes(self) -> list[Process]:
        """The process images by their number, the `process` of tables."""
        self._learn_processes()
        return self._processes

    def _learn_processes(self) -> None:
        """Take in the processes that the reader has found since."""
        if self.reader.processes(len(self._processes)):
            with self._learning:
                self._add_found_processes()

    def _add_found_processes(self) -> None:
        for trace, index, pid in self.reader.processes(len(self._processes)):
            found = self.traces[trace].info.processes
            process = found.get(index)
            if process is None and index == libpttread.ANY:
                process = next((p for p in found.values() if p.inner_pid == pid), None)
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

    @property
    def thread_ids(self) -> list[tuple[int, int]]:
        """(process number, tid) of the threads by their number in the traceset."""
        if self.reader.thread_count() != len(self._known_threads):
            self._known_threads = self.reader.threads()
        return self._known_threads

    def thread_name(self, thread: int, at_ns: int | None = None) -> str:
        """Return the name of a thread by its number, or the empty one.

        A thread that nobody named has the name of the one that created it.

        Args:
            thread: Its number.
            at_ns: A time at which it lived, such as that of its first event: of several threads
                that had the same id, the one of that time is meant. None for the last one.
        """
        names = self._names  # another thread may forget them meanwhile
        chain = []
        key = thread, self.thread_names.turn(thread, at_ns)
        while key not in names:
            name = names[key] = self._own_name(*key)
            chain.append(key)
            if name:
                break
            key = self.thread_names.creators.get(key, key)
        name = names[key]
        names.update(dict.fromkeys(chain, name))
        return name

    def thread_turns(self, thread: int) -> list[tuple[int, str]]:
        """Return the names of those that had the id of a thread, each from when on; -2**63 is ever.

        Of a thread alone that nobody named there is nothing to say.
        """
        begins = self.thread_names.begins.get(thread, [])
        if len(begins) < 2:  # noqa: PLR2004 -- one has it all the time
            name = self.thread_name(thread)
            return [(-(2**63), name)] if name else []
        return [(begin, self.thread_name(thread, begin)) for begin in [-(2**63), *begins]]

    def _own_name(self, thread: int, turn: int) -> str:
        process, tid = self.thread_ids[thread]
        known = self.processes[process]
        name = self.thread_names.names.get((thread, turn)) or self._seen_name(thread, turn)
        # The kernel calls the first thread by the program.
        return name or (
            readable(PurePath(known.exe).name)[:_COMM_MAX] if tid == known.inner_pid else ""
        )

    def _seen_name(self, thread: int, turn: int) -> str:
        """Return what the recorder found a thread to be called, the last time it looked."""
        process, tid = self.thread_ids[thread]
        found, several = "", len(self.thread_names.begins.get(thread, ())) > 1
        for ticks, name in self.processes[process].thread_names.get(tid, ()):
            if ticks is not None:
                trace = self.traces[self.trace_of(process)]
                meant = self.thread_names.turn(thread, self._time_of(trace, ticks))
            else:
                meant = -1 if several else turn
            found = name if meant == turn else found
        return found

    def learn_threads(self, budget: int | None = None) -> None:
        """Look for names of threads in the events, as far as was not looked before.

        Args:
            budget: Search this many bytes of packets at most; None for all.
        """
        far = ALL if budget is None else budget
        if far > self._looked:
            self.thread_names = thread_names(self.reader, self.thread_ids, far)
            self._looked = far
            self._names = {}

    def know_threads(self, names: ThreadNames) -> None:
        """Take over what an earlier search of all events has found."""
        self.thread_names, self._looked = names, ALL
        self._names = {}

    def parents(self) -> dict[int, int]:
        """Return the processes that forked others, by these; by their numbers."""
        known = self.reader.processes(0)
        number_of = {(trace, index): number for number, (trace, index, _) in enumerate(known)}
        found: dict[int, int] = {}
        for number, (trace, _, _) in enumerate(known):
            index = self.processes[number].parent
            parent = None if index is None else number_of.get((trace, index))
            if parent is not None and parent != number:
                found[number] = parent
        return found

    # ---- locks of Python ----

    def semaphores(self) -> Semaphores | None:
        """Return the semaphores that were initialized with a stack; None without Python.

        Of traces that are still being recorded it may be not all of them.
        """
        if self._semaphores is None and any(process.codes for process in self.processes):
            from nptltrace.trace.objects.semaphores import find_semaphores

            budget = _SEARCHED if self.running else ALL
            self._semaphores = find_semaphores(
                self.reader, self.processes, self.thread_ids, self.parents(), budget
            )
        return self._semaphores

    def purposes(self) -> list[tuple[int, int, bool, int]]:
        """Return what semaphores are for, as `objects.semaphores.find_purposes` does."""
        known = self.semaphores()
        if self._purposes is None and known is not None:
            from nptltrace.trace.objects.semaphores import find_purposes

            self._purposes = list(find_purposes(self.processes, known))
        return self._purposes or []

    def uses(self) -> list[Use]:
        """Return what semaphores are used for, as `objects.semaphores.find_uses` does."""
        known = self.semaphores()
        if self._uses is None and known is not None:
            from nptltrace.trace.objects.semaphores import find_uses

            self._uses = list(find_uses(self.processes, known))
        return self._uses or []

    def gils(self, process: int) -> tuple[int, ...]:
        """Return the addresses of the conditions of the locks of a process's interpreters.

        They are looked for among the conditions that events are about, of traces that are still
        being recorded that early ones are about.
        """
        if process not in self._gils:
            self._gils[process] = self._find_gils(process)
        return self._gils[process]

    def _find_gils(self, process: int) -> tuple[int, ...]:
        map_ = self.processes[process].map
        if not any(module.is_interpreter for module in map_.modules()):
            return ()
        if self._conditions is None:
            from nptltrace.trace.objects.conditions import find_conditions

            budget = _SEARCHED if self.running else ALL
            self._conditions = find_conditions(self.reader, self.processes, self.thread_ids, budget)

        return find_gils(self._conditions.get(process, {}), map_.in_interpreter)

    # ---- call sites ----

    def uncovered(self) -> list[dict[str, Any]]:
        """Return the modules of which not all that they do is in the traces, and why."""
        return [item for trace in self.traces for item in trace.info.uncovered]

    def call_sites(self) -> set[tuple[int, int]]:
        """Return (process number, call site) of all that there may be by what is known now."""
        listed = {
            (number, site | entry)
            for number, process in enumerate(self.processes)
            for address in process.sites.values()
            for site in process.map.sites(address)
            for entry in (0, ENTRY)
        }
        chosen = {(number, site) for number, of in self._chosen.items() for site in of.values()}
        return listed | chosen | self._record_sites()

    def _record_sites(self) -> set[tuple[int, int]]:
        """Look for the call sites that only events have: records hold the address itself."""
        streams = range(self.reader.stream_count())
        if all(self.reader.stream_info(n).stream_class != _RECORDS for n in streams):
            return set()
        if self._searched is None:
            self._searched = (
                libpttread.Cursor(self.reader),
                libpttread_text.Names(self.reader),
                set(),
            )
        cursor, names, found = self._searched
        cursor.refresh()
        buffer = libpttread.Buffer(_BATCH)
        while cursor.read(buffer):
            missing = names.missing(buffer)
            found |= {
                (process, at) for kind, process, at in missing if kind == libpttread_text.SITE
            }
        return found

    # ---- what is wrong ----

    def remarks(self) -> list[str]:
        """Return what a reader of the results should know, a sentence each."""
        found: list[str] = []
        for trace in self.traces:
            found += [f"{trace.path}: {remark}" for remark in trace.info.remarks]
            if trace.info.session.filter:
                chosen = trace.info.session.filter
                found.append(
                    f"{trace.path}: recorded with --filter {chosen}: other events are not there"
                )
            without = trace.info.session.number("events_without_site")
            if without:
                have = plural(without, "event has", "events have")
                found.append(
                    f"{trace.path}: {without} {have} no call site: "
                    "their process has more of them than there are numbers"
                )
            without = trace.info.session.number("events_without_stack")
            if without:
                have = plural(without, "event has", "events have")
                found.append(
                    f"{trace.path}: {without} {have} no call stack: the call was not found in it, "
                    "or its process has too many"
                )
            if trace.info.session.raw.get("buffers_shortened"):
                found.append(
                    f"{trace.path}: another program shortened the buffers of the recording: "
                    "the events in them are lost, and nobody knows how many"
                )
            if trace.info.session.raw.get("counts_overwritten"):
                found.append(
                    f"{trace.path}: the program overwrote counts of the tracer in its memory: "
                    "how many events are lost is not known"
                )
            missing = self.missing_events(trace)
            if missing:
                have = plural(missing, "event that was", "events that were")
                found.append(
                    f"{trace.path}: {missing} {have} recorded are not in it: "
                    "files are missing or empty"
                )
            if self.reader.trace_info(trace.number).packets == 0 and not trace.running:
                found.append(f"{trace.path}: holds no events")
        if self.alignment.note:
            found.append(self.alignment.note)
        return found + self.notes

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

    def damages(self, start: int = 0) -> list[libpttread.Damage]:
        """Return the parts that could not be read so far."""
        return self.reader.damages(start)

    def paths(self) -> Iterable[Path]:
        """Return the trace directories and logs, as they were given."""
        return self._given
