"""Waits of many kinds, each at a line that ends in `# waits`, and the objects of the waits.

Each wait lasts longer than all other steps: the thread that ends the wait sleeps first. It ends the
wait at a line that ends in `# ends`.
"""

import contextlib
import ctypes
import functools
import queue
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PAUSE = 0.06


def later(function, *args):
    time.sleep(PAUSE)
    function(*args)  # ends


def in_time(function, *args):
    thread = threading.Thread(target=later, args=(function, *args))
    thread.start()
    return thread


def taken(lock):
    lock.acquire()
    return lock


def plain_lock():
    lock = taken(threading.Lock())
    in_time(lock.release)
    with lock:  # waits
        pass


def by_name():
    lock = taken(threading.Lock())
    in_time(lock.release)
    lock.acquire()  # waits


def with_limit():
    lock = taken(threading.Lock())
    in_time(lock.release)
    lock.acquire(timeout=10)  # waits


def again_by_another():
    lock = threading.RLock()
    ready = threading.Lock()
    ready.acquire()

    def hold():
        with lock:
            ready.release()
            time.sleep(PAUSE)

    threading.Thread(target=hold).start()
    while not ready.acquire(False):
        time.sleep(0.001)
    with lock:  # waits
        pass


def condition():
    changed = threading.Condition()

    def change():
        with changed:
            changed.notify()

    with changed:
        in_time(change)
        changed.wait()  # waits


def semaphore():
    free = threading.Semaphore(0)
    in_time(free.release)
    free.acquire()  # waits


def event():
    came = threading.Event()
    in_time(came.set)
    came.wait()  # waits


def empty_queue():
    items = queue.Queue()
    in_time(items.put, 1)
    items.get()  # waits


def full_queue():
    items = queue.Queue(1)
    items.put(1)
    in_time(items.get)
    items.put(2)  # waits


def barrier():
    both = threading.Barrier(2)
    in_time(both.wait)
    both.wait()  # waits


def future():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, PAUSE).result()  # waits


class Store:
    def __init__(self, lock):
        self.lock = lock
        with lock:  # waits
            self.made = True

    @property
    def value(self):
        in_time(self.lock.release)
        return self.lock.acquire()  # waits

    def __enter__(self):
        in_time(self.lock.release)
        self.lock.acquire()  # waits

    def __exit__(self, *what):
        pass


def methods():
    lock = taken(threading.Lock())
    in_time(lock.release)
    store = Store(lock)
    taken(lock)
    store.value
    with store:
        pass


def generator():
    def numbers(lock):
        yield lock.acquire()  # waits

    lock = taken(threading.Lock())
    in_time(lock.release)
    for _ in numbers(lock):
        pass


def coroutine():
    async def inner(lock):
        lock.acquire()  # waits

    async def outer(lock):
        await inner(lock)

    lock = taken(threading.Lock())
    in_time(lock.release)
    with contextlib.suppress(StopIteration):
        outer(lock).send(None)


def called_by_c():
    lock = taken(threading.Lock())
    in_time(lock.release)
    sorted([2], key=lambda _: lock.acquire())  # waits
    taken_again = functools.partial(later, lock.release)
    threading.Thread(target=taken_again).start()
    list(map(lambda _: lock.acquire(), [1]))  # waits


def called_by_a_library():
    lock = taken(threading.Lock())

    def compare(a, b):
        lock.acquire()  # waits
        lock.release()
        return 0

    in_time(lock.release)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    numbers = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(numbers, 2, 4, kind(compare))


def recursion():
    lock = taken(threading.Lock())

    def down(depth):
        if depth:
            return down(depth - 1)
        return lock.acquire()  # waits

    in_time(lock.release)
    down(200)


def far_down():
    lock = taken(threading.Lock())
    in_time(lock.release)
    if not lock:
        lock = [
            1,
            2,
        ]



    lock.acquire(  # waits
        True
    )


def compiled():
    lock = taken(threading.Lock())
    in_time(lock.release)
    text = "\n\ndef made(lock):\n    lock.acquire()\n\nmade(lock)\n"
    exec(compile(text, "made.txt", "exec"), {"lock": lock})


def zipped():
    path = Path(sys.argv[1]) / "packed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("packed.py", "def take(lock):\n\n    lock.acquire()\n")
    sys.path.insert(0, str(path))
    import packed

    lock = taken(threading.Lock())
    in_time(lock.release)
    packed.take(lock)


def über():
    schloß = taken(threading.Lock())
    in_time(schloß.release)
    schloß.acquire()  # waits


def main():
    for case in (
        plain_lock, by_name, with_limit, again_by_another, condition, semaphore, event, empty_queue,
        full_queue, barrier, future, methods, generator, coroutine, called_by_c,
        called_by_a_library, recursion, far_down, compiled, zipped, über,
    ):
        thread = threading.Thread(target=case, name=case.__name__)
        thread.start()
        while thread.is_alive():
            time.sleep(0.002)


main()
