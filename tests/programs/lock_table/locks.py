"""Two locks of Python, used as the argument says."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

first, second = threading.Lock(), threading.Lock()
taken = [False, False]


def wait_for(number: int) -> None:
    """Wait until a thread has announced that it has its lock."""
    while not taken[number]:
        time.sleep(0.0001)


def contend() -> None:
    """A thread waits for a lock that another thread has."""

    def hold() -> None:
        with first:
            taken[0] = True
            wait_for(1)
            time.sleep(0.2)

    other = threading.Thread(target=hold)
    other.start()
    wait_for(0)
    taken[1] = True
    began = time.monotonic_ns()
    with first:
        ended = time.monotonic_ns()
    other.join()
    print(ended - began)


def deadlock() -> None:
    """Two threads wait for one another, to the end."""

    def cross(own: int) -> None:
        (second if own else first).acquire()
        taken[own] = True
        wait_for(1 - own)
        (first if own else second).acquire()

    for own in (0, 1):
        threading.Thread(target=cross, args=(own,), daemon=True).start()
    wait_for(0)
    wait_for(1)
    time.sleep(0.3)
    os._exit(0)


def nest(outer: threading.Lock, inner: threading.Lock) -> None:
    """Take both."""
    with outer, inner:
        time.sleep(0.001)


def run(*calls: Callable[[], None]) -> None:
    """Run each function in its own thread, all at once."""
    threads = [threading.Thread(target=call) for call in calls]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def orders() -> None:
    """Take both locks in one order, and later in the opposite order."""
    run(lambda: nest(first, second))
    run(lambda: nest(second, first))


def correct() -> None:
    """Take both locks in the same order."""
    run(lambda: nest(first, second), lambda: nest(first, second))


def pool() -> None:
    """Wait for work."""
    jobs: queue.SimpleQueue[None] = queue.SimpleQueue()
    threads = [threading.Thread(target=jobs.get) for _ in range(2)]
    for one in threads:
        one.start()
    time.sleep(0.2)
    for _ in threads:
        jobs.put(None)
    for one in threads:
        one.join()


{"contend": contend, "deadlock": deadlock, "orders": orders, "pool": pool, "correct": correct}[
    sys.argv[1]
]()
