"""A lock in comprehensions, and in a lambda."""

import threading

from witness import keep, waits

lock = threading.Lock()


def take():
    with waits("contended"): lock.acquire()
    lock.release()


keep(lock)
[take() for _ in range(2)]
keep(lock)
{n: take() for n in range(2)}
keep(lock)
(lambda: take())()
