"""A lock in code that is compiled while the program runs."""

import threading

import witness

TEXT = """
from witness import keep, waits


def made(lock):
    keep(lock)
    with waits("contended"): lock.acquire()
"""

names = {}
exec(compile(TEXT, "made.txt", "exec"), names)
names["made"](threading.Lock())
