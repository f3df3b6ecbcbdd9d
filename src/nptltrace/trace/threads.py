"""Names of threads that the trace itself tells, and which thread a pthread_t is.

The recorder looks up names while it runs and misses threads that live too short for that; the
events that create, begin and name threads say the rest.
"""

from __future__ import annotations

import bisect
import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nptltrace._binding import libpttread
from nptltrace.catalog import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ThreadNames", "thread_names"]

_ID = {event.name: event.id for event in EVENTS if event.domain == "thread"}
_CREATED, _BEGIN, _NAME = _ID["NEW_THREAD_CREATED"], _ID["THREAD_BEGIN"], _ID["THREAD_NAME"]
ALL = 2**63


@dataclass(slots=True)
class ThreadNames:
    """What events say of threads.

    Attributes:
        names: Name by thread (number in the traceset); the last one counts.
        pthreads: By (process, pthread_t) the threads that had it, one after the other: since when,
            in ns, and which. From its creation on, as far as that is told.
        creators: Thread that created a thread.
        entries: (process, call site) of the first routines of threads.
    """

    names: dict[int, str] = field(default_factory=dict)
    pthreads: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    creators: dict[int, int] = field(default_factory=dict)
    entries: set[tuple[int, int]] = field(default_factory=set)


def thread_names(
    reader: libpttread.Reader, rows: Sequence[tuple[int, int]], budget: int = ALL
) -> ThreadNames:
    """Look for names in the events.

    Args:
        reader: Of the opened traces.
        rows: (process, tid) of each thread that it knows.
        budget: How many bytes of packets to search at most.
    """
    created: dict[tuple[int, int], list[tuple[int, int]]] = {}
    by_serial: dict[tuple[int, int, int], int] = {}
    begun: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    own: dict[int, int] = {}
    created_by: dict[int, tuple[int, int]] = {}
    named: list[tuple[int, int, int, str]] = []
    entries: set[tuple[int, int]] = set()
    for buffer in reader.find((_CREATED, _BEGIN, _NAME), budget):
        serials, names = _numbers(buffer, "serial"), _texts(buffer)
        creators = _numbers(buffer, "creator")
        entries.update(_entries(buffer, rows))
        for i in range(buffer.count):
            thread, address = buffer.arrays["thread"][i], buffer.arrays["object"][i]
            ts, number = buffer.arrays["ts"][i], buffer.arrays["id"][i]
            key = (rows[thread][0], address)
            if number == _CREATED:
                created.setdefault(key, []).append((ts, serials[i]))
            elif number == _BEGIN:
                begun.setdefault(key, []).append((ts, thread, serials[i]))
                by_serial[(*key, serials[i])] = thread
                own[thread] = address
                created_by[thread] = (rows[thread][0], creators[i])
            else:
                named.append((ts, thread, address, names[i]))
    found = ThreadNames(pthreads=_tenures(created, begun), entries=entries)
    numbers = {row: number for number, row in enumerate(rows)}
    found.creators = {
        thread: numbers[creator] for thread, creator in created_by.items() if creator in numbers
    }
    for times in created.values():
        times.sort()
    for ts, thread, address, name in sorted(named):
        key = (rows[thread][0], address)
        target = thread if own.get(thread) == address else None
        if target is None and key in created:
            times = created[key]
            at = max(bisect.bisect_right(times, (ts, 2**64)) - 1, 0)
            target = by_serial.get((*key, times[at][1]))
        elif target is None and key not in begun and thread not in own:
            target = thread  # the main thread, which no event begins, names itself
        if target is not None and name:
            found.names[target] = name
    return found


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
    made = {(*key, serial): ts for key, times in created.items() for ts, serial in times}
    return {
        # A thread may begin before who created it can say so.
        key: sorted(
            (min(ts, made.get((*key, serial), ts)), thread) for ts, thread, serial in threads
        )
        for key, threads in begun.items()
    }


def _numbers(buffer: libpttread.Buffer, name: str) -> list[int]:
    """Return a field of the events, 0 where there is none."""
    values, valid = (ctypes.c_int64 * buffer.size)(), (ctypes.c_uint8 * buffer.size)()
    libpttread.field_column(buffer, name, ctypes.addressof(values), ctypes.addressof(valid))
    return list(values[: buffer.count])


def _texts(buffer: libpttread.Buffer) -> list[str]:
    """Return the field `name` of the events, empty where there is none."""
    offsets = (ctypes.c_int64 * (buffer.size + 1))()
    need = libpttread.bytes_column(buffer, "name", ctypes.addressof(offsets), None, 0)
    data = ctypes.create_string_buffer(max(need, 1))
    libpttread.bytes_column(buffer, "name", ctypes.addressof(offsets), data, need)
    raw = data.raw
    return [
        raw[offsets[i] : offsets[i + 1]].decode("utf-8", "replace") for i in range(buffer.count)
    ]
