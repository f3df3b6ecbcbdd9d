"""Names of threads by the events of a trace, and which thread a pthread_t is.

The recorder looks up names while it runs and misses threads that live too short for that; the
events that create, begin and name threads say the rest. The kernel gives the id of a thread that
has ended to another one, and a number of the traceset then stands for several threads, one after
the other: each is known by the number and by its turn.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace._dataclasses import dataclass, field
from nptltrace.catalog import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["UNSEEN_NS", "ThreadNames", "thread_names"]

_ID = {event.name: event.id for event in EVENTS if event.domain in {"thread", "process"}}
_CREATED, _BEGIN, _NAME = _ID["NEW_THREAD_CREATED"], _ID["THREAD_BEGIN"], _ID["THREAD_NAME"]
_START = _ID["PROCESS_START"]
ALL = 2**63
# The time of the first event of a thread that has none: only others name it.
UNSEEN_NS = 2**63 - 1
_A_WHILE_NS = 1000


@dataclass(slots=True)
class ThreadNames:
    """Threads by the events that create, begin and name them.

    Attributes:
        begins: When the threads with one id began, in order, by their number in the traceset.
        names: Name by thread and turn; the last one counts.
        pthreads: By (process, pthread_t) the threads that had it, one after the other: since when,
            in ns, and which. From its creation on, as far as that is known.
        creators: Thread and turn of the creator of a thread, by its own.
        entries: (process, call site) of the first routines of threads.
    """

    begins: dict[int, list[int]] = field(default_factory=dict)
    names: dict[tuple[int, int], str] = field(default_factory=dict)
    pthreads: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    creators: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    entries: set[tuple[int, int]] = field(default_factory=set)

    def turn(self, thread: int, at_ns: int | None = None) -> int:
        """Return which of the threads with one id is meant: its turn.

        0 is a thread whose begin is not in the trace, such as the first thread of a process. -1
        means that none of them is known to be meant.

        Args:
            thread: Number in the traceset.
            at_ns: A time at which it lived, `UNSEEN_NS` for an unknown one; None for the last one.
        """
        begins = self.begins.get(thread, ())
        if at_ns == UNSEEN_NS:
            return -1 if len(begins) > 1 else len(begins)
        return len(begins) if at_ns is None else bisect.bisect_right(begins, at_ns)

    def lived_ns(self, thread: int) -> list[int | None]:
        """Return a time in the life of each thread that had an id, by turn.

        None stands for a thread without such a known time.
        """
        begins = self.begins.get(thread, [])
        ends = [*begins[1:], begins[-1] + 2 * _A_WHILE_NS] if begins else []
        first = begins[0] - _A_WHILE_NS if begins else None
        return [first, *((begin + end) // 2 for begin, end in zip(begins, ends, strict=True))]


def thread_names(
    reader: libpttread.Reader, rows: Sequence[tuple[int, int]], budget: int = ALL
) -> ThreadNames:
    """Look for names in the events.

    Args:
        reader: Of the opened traces.
        rows: (process, tid) of each thread that it knows.
        budget: How many bytes of packets to search at most.
    """
    search = _Search(rows)
    for buffer in reader.find((_CREATED, _BEGIN, _NAME, _START), budget):
        search.take(buffer)
    return search.found()


class _Search:
    """Single events about threads, until all of them are there.

    Args:
        rows: (process, tid) of each thread.
    """

    def __init__(self, rows: Sequence[tuple[int, int]]) -> None:
        self._rows = rows
        # By (process, pthread_t): when, and the serial number; of begins the thread, too.
        self._created: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._begun: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        # Likewise of processes that start: when, and the first thread.
        self._first: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # By thread: when, and the pthread_t.
        self._own: dict[int, list[tuple[int, int]]] = {}
        self._created_by: list[tuple[int, int, tuple[int, int]]] = []
        self._named: list[tuple[int, int, int, str]] = []
        self._entries: set[tuple[int, int]] = set()

    def take(self, buffer: libpttread.Buffer) -> None:
        """Take some events in."""
        serials = libpttread.numbers(buffer, "serial")
        names = [
            text.decode("utf-8", "replace") for text in libpttread.byte_strings(buffer, "name")
        ]
        creators = libpttread.numbers(buffer, "creator")
        own = libpttread.numbers(buffer, "pthread")
        self._entries.update(_entries(buffer, self._rows))
        for i in range(buffer.count):
            thread, address = buffer.arrays["thread"][i], buffer.arrays["object"][i]
            ts, number = buffer.arrays["ts"][i], buffer.arrays["id"][i]
            process = self._rows[thread][0]
            key = (process, address)
            if number == _START:
                self._first.setdefault((process, own[i]), []).append((ts, thread))
            elif number == _CREATED:
                self._created.setdefault(key, []).append((ts, serials[i]))
            elif number == _BEGIN:
                self._begun.setdefault(key, []).append((ts, thread, serials[i]))
                self._own.setdefault(thread, []).append((ts, address))
                self._created_by.append((ts, thread, (process, creators[i])))
            else:
                self._named.append((ts, thread, address, names[i]))

    def found(self) -> ThreadNames:
        """Return the threads that all of them describe."""
        for times in (*self._created.values(), *self._own.values()):
            times.sort()
        found = ThreadNames(
            begins={thread: [ts for ts, _ in lives] for thread, lives in self._own.items()},
            pthreads=self._first | _tenures(self._created, self._begun),
            entries=self._entries,
        )
        numbers = {row: number for number, row in enumerate(self._rows)}
        for ts, thread, creator in self._created_by:
            if creator in numbers:
                by = numbers[creator]
                found.creators[thread, found.turn(thread, ts)] = (by, found.turn(by, ts))
        by_serial = {
            (*key, serial): (thread, found.turn(thread, ts))
            for key, lives in self._begun.items()
            for ts, thread, serial in lives
        }
        for ts, thread, address, name in sorted(self._named):
            target = self._named_one(ts, thread, address, found.turn(thread, ts), by_serial)
            if target is not None and name:
                found.names[target] = name
        return found

    def _named_one(
        self, ts: int, thread: int, address: int, turn: int,
        by_serial: dict[tuple[int, int, int], tuple[int, int]],
    ) -> tuple[int, int] | None:  # fmt: skip
        """Return thread and turn of the thread that another one names, by the pthread_t."""
        key = (self._rows[thread][0], address)
        if turn and self._own[thread][turn - 1][1] == address:
            return thread, turn
        if key in self._created:
            times = self._created[key]
            at = max(bisect.bisect_right(times, (ts, 2**64)) - 1, 0)
            return by_serial.get((*key, times[at][1]))
        if key in self._first:
            return self._first[key][0][1], 0
        # The first thread of a process whose start is not in the trace names itself.
        return None if key in self._begun or turn else (thread, 0)


def _entries(
    buffer: libpttread.Buffer, rows: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield (process, call site) of the first routines of threads."""
    columns = (buffer.arrays[name][: buffer.count] for name in ("id", "thread", "site"))
    for number, thread, site in zip(*columns, strict=True):
        if number == _BEGIN and site:
            yield rows[thread][0], site


def _tenures(
    created: dict[tuple[int, int], list[tuple[int, int]]],
    begun: dict[tuple[int, int], list[tuple[int, int, int]]],
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return since when which threads had an address; see `ThreadNames.pthreads`."""
    created_at = {(*key, serial): ts for key, times in created.items() for ts, serial in times}
    return {
        # A thread may begin before its creator can report it.
        key: sorted(
            (min(ts, created_at.get((*key, serial), ts)), thread) for ts, thread, serial in threads
        )
        for key, threads in begun.items()
    }
