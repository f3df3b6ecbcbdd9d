"""Threads without events or waits for most of their life."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["Life", "Lived", "silent"]


class Lived(Protocol):
    """The lifetime and the silent time of a thread."""

    @property
    def pid(self) -> int:
        """Process id."""

    @property
    def life_ns(self) -> int:
        """Time from the thread's first event to its end."""

    @property
    def silent_ns(self) -> int:
        """Sum of all times of 10 ms or longer without an event, outside of waits."""


class Life(NamedTuple):
    """The lifetime and the silent time of a thread; see `Lived`."""

    pid: int
    life_ns: int
    silent_ns: int


Thread = TypeVar("Thread", bound=Lived)


def silent(threads: Iterable[Thread], awaited: Collection[int] = ()) -> list[Thread]:
    """Return the threads without event and wait for most of their life.

    A single silent thread of a process is left out: contention needs two threads.

    Args:
        threads: The threads of a traceset.
        awaited: Pids of processes with a thread that waits for ever. There, a single silent thread
            counts too.
    """
    mostly = [thread for thread in threads if 2 * thread.silent_ns > thread.life_ns]
    count = Counter(thread.pid for thread in mostly)
    return [thread for thread in mostly if count[thread.pid] > 1 or thread.pid in awaited]
