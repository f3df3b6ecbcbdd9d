"""Threads that wait for work, and threads that wait for one another; marks tell them apart."""

import importlib
import queue
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PAUSE = 0.05
items, lock, again, came, free = (
    queue.Queue(), threading.Lock(), threading.RLock(), threading.Event(), threading.Semaphore(0)
)


def later(function, *args):
    time.sleep(PAUSE)
    function(*args)


def empty_queue():
    threading.Thread(target=later, args=(items.put, 1)).start()
    items.get()  # idle


def event():
    threading.Thread(target=later, args=(came.set,)).start()
    came.wait()  # idle


def semaphore():
    threading.Thread(target=later, args=(free.release,)).start()
    free.acquire()  # idle


def future():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, PAUSE).result()  # idle
        time.sleep(PAUSE)


def simple_queue():
    many = queue.SimpleQueue()

    def take():
        many.get()  # idle
        many.put(1)  # by a thread that took the lock of the queue

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    later(many.put, 1)
    for thread in threads:
        thread.join()


def end_of_thread():
    thread = threading.Thread(target=time.sleep, args=(PAUSE,))
    thread.start()
    thread.join()  # join


def imported():
    with tempfile.TemporaryDirectory() as place:
        Path(place, "slow.py").write_text(f"import time\ntime.sleep({PAUSE})\n")
        sys.path.insert(0, place)
        threading.Thread(target=importlib.import_module, args=("slow",)).start()
        while "slow" not in sys.modules:
            time.sleep(0.001)
        importlib.import_module("slow")  # contended


def hold(one, held):
    with one:
        held.set()
        time.sleep(PAUSE)


def held_lock():
    held = threading.Event()
    threading.Thread(target=hold, args=(lock, held)).start()
    while not held.is_set():
        time.sleep(0.001)
    with lock:  # contended
        pass


def held_rlock():
    held = threading.Event()
    threading.Thread(target=hold, args=(again, held)).start()
    while not held.is_set():
        time.sleep(0.001)
    with again:  # contended
        pass


for case in (
    empty_queue, event, semaphore, future, simple_queue, end_of_thread, imported, held_lock,
    held_rlock,
):
    case()
