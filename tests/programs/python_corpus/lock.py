"""A lock, taken by a statement."""

import threading

from witness import keep, waits

lock = threading.Lock()
keep(lock)
with waits("contended"), lock: pass
