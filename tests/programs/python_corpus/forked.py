"""Locks in a parent and in its child."""

import os
import threading

from witness import keep, waits

lock = threading.Lock()
child = os.fork()
if not child:
    keeper = keep(lock)
    with waits("contended"): lock.acquire()
    keeper.join()
    os._exit(0)
os.waitpid(child, 0)
keep(lock)
with waits("contended"): lock.acquire()
