"""A lock in a generator, and in a generator that delegates to the first."""

import threading

from witness import keep, waits

lock = threading.Lock()


def inner():
    with waits("contended"): lock.acquire()
    yield 1
    lock.release()


def outer():
    yield from inner()


for made in (inner, outer):
    keep(lock)
    for _ in made():
        pass
