"""A lock below many calls."""

import threading

from witness import keep, waits

lock = threading.Lock()


def down(depth):
    if depth:
        return down(depth - 1)
    with waits("contended"): lock.acquire()


keep(lock)
down(300)
