"""A lock in functions that built-in functions call."""

import functools
import threading

from witness import keep, waits

lock = threading.Lock()


def take(*_):
    keep(lock)
    with waits("contended"): lock.acquire()
    lock.release()
    return 1


sorted([2], key=take)
list(map(take, [1]))
functools.reduce(take, [1, 2])
max([1, 2], key=lambda _: take())
