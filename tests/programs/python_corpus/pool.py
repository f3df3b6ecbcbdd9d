"""A pool: its result, its idle threads, and a lock that its tasks take."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed, wait

from witness import keep, waits

lock = threading.Lock()


def task():
    keep(lock)
    with waits("contended"): lock.acquire()
    lock.release()
    return 1


with ThreadPoolExecutor(2) as pool:
    future = pool.submit(task)
    with waits("idle"): future.result()
    with waits("idle"): wait([pool.submit(time.sleep, 0.05)])
    with waits("idle"): list(as_completed([pool.submit(time.sleep, 0.05)]))
    with waits("idle"): list(pool.map(time.sleep, [0.05]))
