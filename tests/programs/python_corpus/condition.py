"""A condition: threads wait for work there, and for its lock."""

import threading

from witness import keep, soon, waits

changed = threading.Condition()


def change():
    with changed:
        changed.notify()


def wait():
    with changed:
        soon(change)
        with waits("idle"): changed.wait()


wait()
keep(changed)
with waits("contended"): changed.acquire()
