"""A queue that is written in C."""

import queue

from witness import soon, waits

items = queue.SimpleQueue()
soon(items.put, 1)
with waits("idle"): items.get()
soon(items.put, 2)
with waits("idle"): items.get(timeout=10)
