"""The queues of Python that threads wait for, and the jobs that workers leave waiting.

A thread may wait for an item on purpose, when it is idle. Two facts show that it is not idle. The
thread does a job of a pool, and the pool has more jobs and no free worker. Or another thread waits
for an item from this thread, and this thread waits for an item from the other thread.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nptltrace.hang.stack.cpython_slots import Slots

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.hang.stack.cpython import InsideFrame, Pythons
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.thread_picture import ThreadPicture

__all__ = ["with_python_queues"]

_WORKER, _POOLS, _JOBS = "_worker", "/concurrent/futures/thread.py", "work_queue"
_GET, _QUEUES = "get", "/queue.py"
_KINDS = frozenset({"Queue", "LifoQueue", "PriorityQueue"})
_PUTS = frozenset({"put", "put_nowait"})
# A `SimpleQueue` has the number of its items since 3.13. Before, it has a list, and the number of
# items taken from the list. A list has its length.
_COUNTED_SINCE, _COUNT, _LIST, _TAKEN, _LENGTH = 13, 56, 32, 40, 16
# The number of innermost frames to search for queues.
_FRAMES = 16


def with_python_queues(
    process: Target, pythons: Pythons, threads: Sequence[ThreadPicture]
) -> list[ThreadPicture]:
    """Return the threads with `leaves_jobs` and `crossed`, which show that they are not idle.

    Args:
        process: The process.
        pythons: The functions of Python in the process.
        threads: All threads of the process.
    """
    if not pythons.threads:
        return list(threads)
    slots = Slots(process.read, pythons)
    inside = {
        seen.thread.tid: pythons.inside(seen.thread.inner_tid)
        for seen in threads
        if seen.wait is not None
    }
    crossed = _crossed(slots, pythons, inside)
    return [
        seen._replace(
            leaves_jobs=_jobs(slots, inside.get(seen.thread.tid, [])) > 0,
            crossed=seen.thread.tid in crossed,
        )
        for seen in threads
    ]


def _jobs(slots: Slots, frames: Sequence[InsideFrame]) -> int:
    """Return the number of waiting jobs in the pool of a thread that does a job of the pool."""
    worker = next((frame for frame in frames[1:] if _is(frame, _WORKER, _POOLS)), None)
    if worker is None:
        return 0
    try:
        jobs = dict(slots.variables(worker)).get(_JOBS, 0)
        if not jobs:
            return 0
        if worker.minor >= _COUNTED_SINCE:
            return slots.word(jobs + _COUNT)
        return slots.word(slots.word(jobs + _LIST) + _LENGTH) - slots.word(jobs + _TAKEN)
    except (struct.error, ValueError):
        return 0


def _crossed(slots: Slots, pythons: Pythons, inside: dict[int, list[InsideFrame]]) -> set[int]:
    """Return the threads that wait in a cycle: each waits for an item that another would put."""
    gets: dict[int, int] = {}
    puts: dict[int, set[int]] = {}
    for tid, frames in inside.items():
        if not frames or not _is(frames[0], "wait", "/threading.py"):
            continue
        if len(frames) > 1 and _is(frames[1], _GET, _QUEUES):
            try:
                gets[tid] = slots.first(frames[1])
                puts[tid] = {*_put_into(slots, pythons, frames[2:_FRAMES])}
            except (struct.error, ValueError):
                gets.pop(tid, None)
    feeds: dict[int, set[int]] = {}
    for tid, queue in gets.items():
        # A worker often puts new items into its own queue.
        for into in puts[tid] - {queue}:
            feeds.setdefault(into, set()).add(queue)
    return {tid for tid, queue in gets.items() if _comes_back(queue, feeds)}


def _comes_back(queue: int, feeds: dict[int, set[int]]) -> bool:
    """Return whether a queue feeds itself through other queues."""
    known: set[int] = set()
    left = [queue]
    while left:
        new = feeds.get(left.pop(), set()) - known
        known |= new
        left += new
    return queue in known


def _put_into(slots: Slots, pythons: Pythons, frames: Sequence[InsideFrame]) -> Iterator[int]:
    """Yield the queues with a name in functions that call `put`."""
    for frame in frames:
        if not _PUTS & slots.names(frame):
            continue
        named = [*slots.variables(frame), *slots.shared(frame)]
        objects = {value for _, value in named}
        for value in objects.copy():
            objects.update(_attributes(slots, frame, value))
        yield from (address for address in objects if _kind(pythons, address) in _KINDS)


def _attributes(slots: Slots, frame: InsideFrame, address: int) -> Iterator[int]:
    """Yield the attributes of an object that a function uses by name."""
    names = slots.names(frame)
    try:
        for name, value in slots.attributes(frame, address):
            if name in names:
                yield value
    except (struct.error, ValueError, StopIteration):  # The object has no attributes.
        return


def _kind(pythons: Pythons, address: int) -> str:
    try:
        return pythons.kind_of(address)
    except struct.error:
        return ""


def _is(frame: InsideFrame, function: str, path: str) -> bool:
    name = frame.function.function.rpartition(".")[2]
    return name == function and frame.function.path.endswith(path)
