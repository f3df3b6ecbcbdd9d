"""Queues that are empty, or full."""

import queue

from witness import soon, waits

items = queue.Queue(1)
soon(items.put, 1)
with waits("idle"): items.get()
items.put(2)
soon(items.get)
with waits("idle"): items.put(3)
items.get()
soon(items.task_done)
soon(items.task_done)
soon(items.task_done)
with waits("idle"): items.join()
