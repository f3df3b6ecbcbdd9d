"""Feeds a traceset to the checker: a complete recording, or a recording that still grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nptltrace._binding import libpttread, libptttrack_facts
from nptltrace.analysis.checking.handlers import posters_of
from nptltrace.analysis.checking.silent_threads import Life
from nptltrace.analysis.checking.static_data import loaded_for_good, stack_area
from nptltrace.analysis.model import share_memory
from nptltrace.analysis.recording_state import add_levels, ended_ns, monotonic_ns
from nptltrace.trace.objects.gils import HAND_OVER
from nptltrace.trace.reading.prefetch import followed

if TYPE_CHECKING:
    from nptltrace.trace.info import Process
    from nptltrace.trace.traceset import Traceset

__all__ = ["LONG_HOLD_NS", "Checker", "checked"]

LONG_HOLD_NS = 1_000_000_000
# Nobody would notice shorter waits.
LONG_WAIT_NS = 1_000_000
# A process that lives less than `_LONG_NS` is not reported as left alone. Processes that end within
# `_TOGETHER_NS` may have been ended together.
_LONG_NS, _TOGETHER_NS = 500_000_000, 100_000_000


class Checker:
    """Follows the events of a traceset and collects facts for findings.

    Args:
        source: The opened traces.
        long_hold_ns: A hold of this time or longer, in ns, is too long.

    Attributes:
        check: The native checker.
    """

    def __init__(self, source: Traceset, long_hold_ns: int = LONG_HOLD_NS) -> None:
        self._source = source
        self.check = libptttrack_facts.Check(long_hold_ns, LONG_WAIT_NS)
        self._cursor = libpttread.Cursor(source.reader)
        self._threads = 0
        self._processes: dict[int, tuple[int | None, int]] = {}
        self._places: dict[tuple[int, int], int] = {}
        self._parents: dict[int, int] = {}
        self._shared = 0

    @property
    def lost(self) -> int:
        """Number of known lost events."""
        return max(self.check.lost, self._source.lost_events())

    @property
    def found(self) -> int:
        """Number of facts so far, with withdrawn facts."""
        return len(self.check.table("facts"))

    @property
    def partial(self) -> bool:
        """Whether events are missing, so that the absence of an event proves nothing."""
        sessions = [trace.info.session for trace in self._source.traces]
        # The session says: only some threads are in the trace, the levels changed, a filter left
        # events out, or calls of some modules bypassed the tracer.
        incomplete = any(
            s.raw.get("part") or s.raw.get("level_changed") or s.filter or s.uncovered
            for s in sessions
        )
        source = self._source
        return bool(
            self.lost
            or incomplete
            or source.damages()
            or any(source.missing_events(trace) for trace in source.traces)
        )

    @property
    def going_on(self) -> bool:
        """Whether the recording continued after the end of the trace, or still runs."""
        return self._source.running or any(
            "derived_from" in trace.info.session.raw for trace in self._source.traces
        )

    def lives(self) -> list[Life]:
        """Return the lifetime and the silent time of each thread."""
        pids = [process.pid for process in self._source.processes]
        return [
            Life(pids[process], life_ns, silent_ns)
            for process, _, life_ns, silent_ns, _ in self._rows()
        ]

    def awaited(self) -> set[int]:
        """Return the ids of the processes with a thread that still waited at the end."""
        pids = [process.pid for process in self._source.processes]
        return {pids[process] for process, _, _, _, waits in self._rows() if waits}

    def left_alone(self) -> list[tuple[int, int]]:
        """Return the processes without events after a fork beside other threads.

        Returns:
            (pid, pid of the parent) pairs, without processes that ended before the parent's last
            thread.
        """
        rows, processes = self._rows(), self._source.processes
        lives: dict[int, list[tuple[int, int]]] = {}  # begin and end of each thread, by process
        for process, first_ns, life_ns, _, _ in rows:
            lives.setdefault(process, []).append((first_ns, first_ns + life_ns))
        pairs = []
        for process, first_ns, life_ns, silent_ns, _ in rows:
            parent = self._parents.get(process, process)
            if parent == process or parent not in lives or len(lives[process]) > 1:
                continue
            if 2 * silent_ns <= max(life_ns, _LONG_NS):
                continue
            beside = sum(begin < first_ns < end for begin, end in lives[parent])
            parent_end = max(end for _, end in lives[parent])
            outlives = first_ns + life_ns >= parent_end - _TOGETHER_NS
            same_program = processes[process].exe == processes[parent].exe
            if beside > 1 and outlives and same_program:
                pairs.append((processes[process].pid, processes[parent].pid))
        return pairs

    def _rows(self) -> list[tuple[int, int, int, int, bool]]:
        """Return for each thread: process, first event, life, silent time, waits at the end.

        A thread that ended by itself is not silent and does not wait at the end.
        """
        source = self._source
        ends = np.array(self.check.ends(source.killed_ns(), ended_ns(source)), np.int64)
        threads = self.check.table("threads")[1:]
        threads = threads[threads["first_ns"] != libptttrack_facts.END]
        last = threads["last_ns"]
        goes_on = threads["flags"] & libptttrack_facts.LEFT == 0
        until = np.where(goes_on, np.maximum(ends[threads["process"]], last), last)
        tail = until - last
        waits = (threads["waits"] > 0) | (threads["call"] > 0) | (threads["library_wait"] > 0)
        tail[waits | (tail < libptttrack_facts.SILENT_NS)] = 0
        columns = (
            threads["process"],
            threads["first_ns"],
            until - threads["first_ns"],
            threads["silent_ns"].astype(np.int64) + tail,
            goes_on & (threads["waits"] > 0),
        )
        return [*zip(*(column.tolist() for column in columns), strict=True)]

    def read(self, until_ns: int | None = None) -> None:
        """Follow the new events.

        Args:
            until_ns: Stop before this time, in ns; None for the end of the trace.

        Raises:
            NativeError: Memory is out.
        """
        self._learn()
        for buffer in followed(self._source, self._cursor, until_ns):
            self.check.feed(buffer)

    def refresh(self) -> None:
        """Open the events that the recorder has written meanwhile."""
        self._source.refresh()
        self._cursor.refresh()

    def finish(self) -> None:
        """Add the facts that need the end of the trace, and withdraw the facts that it refutes."""
        flags = libptttrack_facts.INCOMPLETE if self.partial else 0
        flags |= libptttrack_facts.RUNNING if self.going_on else 0
        flags |= libptttrack_facts.RAGGED if self._lacks_oldest() else 0
        for number, process in enumerate(self._source.processes):
            if not self.check.waits_for_posts(number):
                continue
            posters = posters_of(process, self._source)
            if posters != "anyone":
                self.check.no_handlers(number, may=posters == "handlers")
        if not self.partial:
            self._learn_gils()
        start = self._source.start_unix_ns
        ends = [process.end_unix_ns for process in self._source.processes]
        self.check.finish(
            [libptttrack_facts.NEVER if ns is None else ns - start for ns in ends], flags
        )

    def _learn_gils(self) -> None:
        """Declare the GILs."""
        for number in range(len(self._source.processes)):
            # A search for GILs reads all events.
            waits = self.check.has_limited_waits(number)
            for gil in filter(None, self._source.python.gils(number) if waits else ()):
                self.check.gil(number, gil, gil + HAND_OVER)

    def _lacks_oldest(self) -> bool:
        """Return whether the recorder dropped the oldest events to keep the latest events."""
        names = ("overwritten_bytes", "removed_events")
        return any(
            trace.info.session.number(name) for trace in self._source.traces for name in names
        )

    def _learn(self) -> None:
        """Declare new threads and processes."""
        reader = self._source.reader
        places = [(trace, index) for trace, index, _ in reader.processes()]
        # After an exec, several images have one index: the last image counts.
        self._places = {place: number for number, place in enumerate(places)}
        for number, process in enumerate(self._source.processes):
            state = (process.parent, len(process.modules))
            if self._processes.get(number) != state:
                self._processes[number] = state
                self._learn_process(number, process, places[number][0])
        add_levels(self.check, self._source)
        shared = sum(len(process.shared) for process in self._source.processes)
        if shared != self._shared:
            self._shared = shared
            share_memory(self.check, self._source)
        if reader.thread_count() != self._threads:
            for number, (owner, tid) in enumerate(reader.threads()):
                self.check.thread(number, owner, tid)
            self._threads = reader.thread_count()
        for use in self._source.python.uses():
            self.check.semaphore(use.process, use.stack, use.use, use.line, units=use.units)

    def _learn_process(self, number: int, process: Process, trace: int) -> None:
        if process.parent is not None:
            parent = self._places.get((trace, process.parent), number)
            if parent != number:
                self._parents[number] = parent
                self.check.child(number, parent)
        monotonic = monotonic_ns(self._source, self._source.traces[trace])
        self.check.clocks(number, self._source.start_unix_ns, monotonic or 0)
        stack_begin = stack_area(process)
        if stack_begin is not None:
            self.check.stack(number, stack_begin)
        for module in loaded_for_good(process, self._source):
            self.check.memory(number, module.start, module.end)


def checked(source: Traceset, long_hold_ns: int = LONG_HOLD_NS) -> Checker:
    """Return a checker that has seen all events of a traceset.

    Args:
        source: The opened traces.
        long_hold_ns: A hold of this time or longer, in ns, is too long.

    Raises:
        NativeError: Memory is out.
    """
    checker = Checker(source, long_hold_ns)
    checker.read()
    checker.finish()
    source.names.learn()
    return checker
