"""Threads that wait for work, and threads that wait for one another; a mark says which."""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

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


for case in (empty_queue, event, semaphore, future, held_lock, held_rlock):
    case()
