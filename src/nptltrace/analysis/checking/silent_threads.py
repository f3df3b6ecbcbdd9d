"""Threads without events or waits for most of their life."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["Life", "Lived", "silent"]


class Lived(Protocol):
    """How long a thread lived, and how much of that time a trace says nothing of."""

    @property
    def pid(self) -> int:
        """Process id."""

    @property
    def life_ns(self) -> int:
        """From its first event to its end."""

    @property
    def silent_ns(self) -> int:
        """Without any event and in no wait, stretches of 10 ms and more."""


class Life(NamedTuple):
    """The life of a thread, as `Lived` has it."""

    pid: int
    life_ns: int
    silent_ns: int


Thread = TypeVar("Thread", bound=Lived)


def silent(threads: Iterable[Thread], awaited: Collection[int] = ()) -> list[Thread]:
    """Return the threads that have no event and no wait for most of their life.

    A thread that is the only such thread of its process is left out: two threads can contend.

    Args:
        threads: The threads of a traceset.
        awaited: Pids of processes with a thread that waits for ever: a single silent thread counts
            there.
    """
    found = [thread for thread in threads if 2 * thread.silent_ns > thread.life_ns]
    many = Counter(one.pid for one in found)
    return [one for one in found if many[one.pid] > 1 or one.pid in awaited]
