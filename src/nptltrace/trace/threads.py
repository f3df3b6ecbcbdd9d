"""Names of threads from the events of a trace, and the thread behind a pthread_t.

The recorder looks up names while it runs, and misses threads with a short life. Events that create,
begin and name threads fill the gap. The kernel reuses the ids of ended threads. Then one number in
the traceset stands for several threads, one after the other. The number and a *turn* identify a
thread.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace._dataclasses import dataclass, field
from nptltrace.catalog import EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["UNSEEN_NS", "ThreadNames", "thread_names"]

_ID = {event.name: event.id for event in EVENTS if event.domain in {"thread", "process"}}
_CREATED, _BEGIN, _NAME = _ID["NEW_THREAD_CREATED"], _ID["THREAD_BEGIN"], _ID["THREAD_NAME"]
_START = _ID["PROCESS_START"]
ALL = 2**63
# The time of the first event, for a thread without events that other threads name.
UNSEEN_NS = 2**63 - 1
_A_WHILE_NS = 1000


@dataclass(slots=True)
class ThreadNames:
    """Threads from the events that create, begin and name them. Times are in ns.

    Attributes:
        begins: By number of the thread, when the threads with this id began, in order.
        names: By thread and turn, the last name.
        pthreads: By (process, pthread_t), pairs of a time and the thread that has the pthread_t
            from then on: from its creation, or else from its begin.
        creators: By thread and turn, thread and turn of the creator.
        entries: (process, call site) of the first routines of threads.
    """

    begins: dict[int, list[int]] = field(default_factory=dict)
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    pthreads: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    creators: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    entries: set[tuple[int, int]] = field(default_factory=set)

    def turn(self, thread: int, at_ns: int | None = None) -> int:
        """Return the turn of a thread among the threads with its id.

        Args:
            thread: Number of the thread in the traceset.
            at_ns: A time in the life of the thread; None for the last thread. `UNSEEN_NS` stands
                for an unknown time.

        Returns:
            The turn. 0 is a thread without its begin in the trace, such as the first thread of a
            process. -1 means that the thread is not known.
        """
        begins = self.begins.get(thread, ())
        if at_ns == UNSEEN_NS:
            return -1 if len(begins) > 1 else len(begins)
        return len(begins) if at_ns is None else bisect.bisect_right(begins, at_ns)

    def lived_ns(self, thread: int) -> list[int | None]:
        """Return a time in the life of each thread with an id, by turn; None if unknown."""
        begins = self.begins.get(thread, [])
        ends = [*begins[1:], begins[-1] + 2 * _A_WHILE_NS] if begins else []
        first = begins[0] - _A_WHILE_NS if begins else None
        return [first, *((begin + end) // 2 for begin, end in zip(begins, ends, strict=True))]


def thread_names(
    reader: libpttread.Reader, rows: Sequence[tuple[int, int]], budget: int = ALL
) -> ThreadNames:
    """Search the events for names.

    Args:
        reader: The reader of the opened traces.
        rows: (process, tid) of each thread of the reader.
        budget: Search this many bytes of packets at most.
    """
    search = _Search(rows)
    for buffer in reader.find((_CREATED, _BEGIN, _NAME, _START), budget):
        search.take(buffer)
    return search.result()


class _Search:
    """Collects events about threads.

    Args:
        rows: (process, tid) of each thread.
    """

    def __init__(self, rows: Sequence[tuple[int, int]]) -> None:
        self._rows = rows
        # By (process, pthread_t): pairs of time and serial number.
        self._created: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # By (process, pthread_t): time, thread and serial number.
        self._begun: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        # By (process, pthread_t): when a process started, and its first thread.
        self._first: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # By thread: pairs of the time of a begin and the pthread_t.
        self._own: dict[int, list[tuple[int, int]]] = {}
        # Time, thread, and (process, tid) of its creator.
        self._created_by: list[tuple[int, int, tuple[int, int]]] = []
        # Time, the thread that gives the name, the pthread_t that gets it, and the name.
        self._named: list[tuple[int, int, int, str]] = []
        self._entries: set[tuple[int, int]] = set()

    def take(self, buffer: libpttread.Buffer) -> None:
        """Take in a buffer of events."""
        serials = libpttread.numbers(buffer, "serial")
        names = [
            text.decode("utf-8", "replace") for text in libpttread.byte_strings(buffer, "name")
        ]
        creators = libpttread.numbers(buffer, "creator")
        pthreads = libpttread.numbers(buffer, "pthread")
        for i in range(buffer.count):
            thread, address = buffer.arrays["thread"][i], buffer.arrays["object"][i]
            ts, number = buffer.arrays["ts"][i], buffer.arrays["id"][i]
            process = self._rows[thread][0]
            key = (process, address)
            if number == _START:
                self._first.setdefault((process, pthreads[i]), []).append((ts, thread))
            elif number == _CREATED:
                self._created.setdefault(key, []).append((ts, serials[i]))
            elif number == _BEGIN:
                self._begun.setdefault(key, []).append((ts, thread, serials[i]))
                self._own.setdefault(thread, []).append((ts, address))
                self._created_by.append((ts, thread, (process, creators[i])))
                if buffer.arrays["site"][i]:
                    self._entries.add((process, buffer.arrays["site"][i]))
            else:
                self._named.append((ts, thread, address, names[i]))

    def result(self) -> ThreadNames:
        """Return the threads that the events describe."""
        for times in (*self._created.values(), *self._own.values()):
            times.sort()
        result = ThreadNames(
            begins={thread: [ts for ts, _ in lives] for thread, lives in self._own.items()},
            pthreads=self._first | _tenures(self._created, self._begun),
            entries=self._entries,
        )
        numbers = {row: number for number, row in enumerate(self._rows)}
        for ts, thread, creator in self._created_by:
            if creator in numbers:
                by = numbers[creator]
                result.creators[thread, result.turn(thread, ts)] = (by, result.turn(by, ts))
        by_serial = {
            (*key, serial): (thread, result.turn(thread, ts))
            for key, lives in self._begun.items()
            for ts, thread, serial in lives
        }
        for ts, thread, address, name in sorted(self._named):
            target = self._target(ts, thread, address, result.turn(thread, ts), by_serial)
            if target is not None and name:
                result.names[target] = name
        return result

    def _target(
        self, ts: int, thread: int, address: int, turn: int,
        by_serial: dict[tuple[int, int, int], tuple[int, int]],
    ) -> tuple[int, int] | None:  # fmt: skip
        """Return thread and turn of the thread that gets a name, by its pthread_t."""
        key = (self._rows[thread][0], address)
        if turn and self._own[thread][turn - 1][1] == address:
            return thread, turn
        if key in self._created:
            times = self._created[key]
            at = max(bisect.bisect_right(times, (ts, 2**64)) - 1, 0)
            return by_serial.get((*key, times[at][1]))
        if key in self._first:
            return self._first[key][0][1], 0
        # The start of the process is not in the trace: its first thread names itself.
        return None if key in self._begun or turn else (thread, 0)


def _tenures(
    created: dict[tuple[int, int], list[tuple[int, int]]],
    begun: dict[tuple[int, int], list[tuple[int, int, int]]],
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return since when which threads have a pthread_t; see `ThreadNames.pthreads`."""
    created_at = {(*key, serial): ts for key, times in created.items() for ts, serial in times}
    return {
        # A thread may begin before its creator can report it.
        key: sorted(
            (min(ts, created_at.get((*key, serial), ts)), thread) for ts, thread, serial in threads
        )
        for key, threads in begun.items()
    }
