"""Semaphores."""

import threading

from witness import soon, waits

free = threading.Semaphore(0)
soon(free.release)
with waits("idle"): free.acquire()
bounded = threading.BoundedSemaphore(1)
bounded.acquire()
soon(bounded.release)
with waits("idle"): bounded.acquire()
