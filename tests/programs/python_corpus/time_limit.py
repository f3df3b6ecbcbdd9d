"""A lock, with a time limit that is long enough, and with a limit that is too short."""

import threading

from witness import keep, soon, waits

lock = threading.Lock()
keep(lock)
with waits("contended"): lock.acquire(timeout=10)
with waits("timeout"): lock.acquire(timeout=0.05)
