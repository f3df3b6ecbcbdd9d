"""The queues of Python that threads wait for or will put into, and jobs that workers leave waiting.

A thread that waits for an item can do so on purpose. Two facts say that it does not: it does a job
of a pool that has other jobs and no worker for them; or it would put into a queue that another
thread waits for, which would put into the queue that this one waits for.
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
# In a `SimpleQueue` the number of its items since 3.13; before that a list, and how many of the
# list's items were taken. In a list the number of items.
_COUNTED_SINCE, _COUNT, _LIST, _TAKEN, _LENGTH = 13, 56, 32, 40, 16
# So many of the innermost functions are looked at.
_FRAMES = 16


def with_python_queues(
    process: Target, pythons: Pythons, threads: Sequence[ThreadPicture]
) -> list[ThreadPicture]:
    """Return the threads with what keeps them from being idle: jobs, and queues crosswise.

    Args:
        process: Whose they are.
        pythons: Its functions of Python.
        threads: As they were seen.
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
    """Return how many jobs of a pool wait while a worker of the pool does a job."""
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
    """Return the threads that each wait for an item which another of these threads would put."""
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
        # Many workers put into the queue that they take from.
        for into in puts[tid] - {queue}:
            feeds.setdefault(into, set()).add(queue)
    return {tid for tid, queue in gets.items() if _comes_back(queue, feeds)}


def _comes_back(queue: int, feeds: dict[int, set[int]]) -> bool:
    """Return whether a queue gets items only after others, and these only after it."""
    known: set[int] = set()
    left = [queue]
    while left:
        new = feeds.get(left.pop(), set()) - known
        known |= new
        left += new
    return queue in known


def _put_into(slots: Slots, pythons: Pythons, frames: Sequence[InsideFrame]) -> Iterator[int]:
    """Yield the queues that functions have names for, where they put something."""
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
    except (struct.error, ValueError, StopIteration):  # It has none.
        return


def _kind(pythons: Pythons, address: int) -> str:
    try:
        return pythons.kind_of(address)
    except struct.error:
        return ""


def _is(frame: InsideFrame, function: str, path: str) -> bool:
    name = frame.function.function.rpartition(".")[2]
    return name == function and frame.function.path.endswith(path)
