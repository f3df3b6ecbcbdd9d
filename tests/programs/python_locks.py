"""Locks of many kinds, each with a single wait; a mark gives the name of the lock."""

import importlib
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PAUSE = 0.03


class Store:
    def __init__(self):
        self.lock = threading.Lock()  # Store.lock = Lock of
        self.again = threading.RLock()  # Store.again = RLock of
        self.changed = threading.Condition()  # Store.changed = Condition of
        self.items = queue.SimpleQueue()
        self.both = threading.Lock(), threading.Lock()  # Lock of .* #2


def later(function, *args):
    def wait():
        time.sleep(PAUSE)
        function(*args)

    threading.Thread(target=wait).start()


def hold(lock, held):
    with lock:
        held.append(1)
        time.sleep(PAUSE)


def waits_for(lock):
    held = []
    thread = threading.Thread(target=hold, args=(lock, held))
    thread.start()
    while not held:
        time.sleep(0.001)
    with lock:
        pass
    thread.join()


def main():
    store = Store()
    for lock in (store.lock, store.again, store.changed, store.both[1]):
        waits_for(lock)
    came, items, free = threading.Event(), queue.Queue(), threading.Semaphore(0)
    later(came.set)
    came.wait()  # Event.wait in
    later(items.put, 1)
    items.get()  # Queue.get in
    later(free.release)
    free.acquire()  # Semaphore.acquire in
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, PAUSE).result()  # Future.result in
    path = Path(sys.argv[1])
    path.joinpath("slow.py").write_text(f"import time\ntime.sleep({PAUSE})\n")
    sys.path.insert(0, sys.argv[1])
    threading.Thread(target=importlib.import_module, args=("slow",)).start()
    while "slow" not in sys.modules:
        time.sleep(0.001)
    importlib.import_module("slow")


main()
