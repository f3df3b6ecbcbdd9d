"""Python programs that hang, and idle Python programs: each is killed when all threads sleep."""

from __future__ import annotations

import _thread
import concurrent.futures
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def run(*functions: Callable[[], object]) -> None:
    threads = [threading.Thread(target=one, name=one.__name__) for one in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- hangs ----


def starved_pool() -> None:
    pool = concurrent.futures.ThreadPoolExecutor(2)
    both = threading.Barrier(2)

    def outer() -> int:
        both.wait()
        return pool.submit(lambda: 1).result()

    for future in [pool.submit(outer) for _ in range(2)]:
        future.result()


def nested_monitor() -> None:
    shop, filled, inside = threading.Lock(), threading.Condition(), threading.Event()

    def producer() -> None:
        inside.wait()
        with shop, filled:
            filled.notify()

    def consumer() -> None:
        with shop, filled:
            inside.set()
            filled.wait()

    run(producer, consumer)


def lost_notify() -> None:
    told = threading.Condition()

    def late() -> None:
        with told:
            told.wait()

    with told:
        told.notify()
    run(late)


def full_queue() -> None:
    one = queue.Queue(1)

    def producer() -> None:
        for job in range(4):
            one.put(job)

    def consumer() -> None:
        one.get()

    run(producer, consumer)


class Joining(importlib.abc.Loader, importlib.abc.MetaPathFinder):
    """Loads a module that waits for the end of a thread that imports the module."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == "joining" else None

    def exec_module(self, _: object) -> None:
        def imports() -> None:
            importlib.import_module("joining")

        run(imports)


def module_that_waits() -> None:
    sys.meta_path.insert(0, Joining())
    importlib.import_module("joining")


def crosswise_events() -> None:
    a, b = threading.Event(), threading.Event()

    def left() -> None:
        a.wait()
        b.set()

    def right() -> None:
        b.wait()
        a.set()

    run(left, right)


def lock_taken_twice() -> None:
    lock = threading.Lock()

    def doubler() -> None:
        with lock, lock:
            pass

    run(doubler)


def lock_taken_twice_beside_others() -> None:
    lock = threading.Lock()

    def doubler() -> None:
        with lock:
            pass
        with lock, lock:
            pass

    run(doubler, lambda: time.sleep(1000))


def two_orders() -> None:
    a, b, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def left() -> None:
        with a:
            both.wait()
            with b:
                pass

    def right() -> None:
        with b:
            both.wait()
            with a:
                pass

    run(left, right)


def absent_at_barrier() -> None:
    three = threading.Barrier(3)

    def first() -> None:
        three.wait()

    def second() -> None:
        three.wait()

    run(first, second)


# ---- nothing to do ----


def idle_worker() -> None:
    jobs = queue.Queue()

    def worker() -> None:
        while True:
            jobs.get()

    jobs.put(1)
    run(worker)


def idle_service() -> None:
    jobs, pool = queue.SimpleQueue(), concurrent.futures.ThreadPoolExecutor(2)
    pool.submit(int).result()
    threading.Thread(target=jobs.get, daemon=True).start()
    threading.Event().wait()


def idle_feeder() -> None:
    jobs = multiprocessing.Queue()
    jobs.put(1)
    jobs.get()
    threading.Event().wait()


def told_to_stop() -> None:
    stop = threading.Event()
    threading.Thread(target=stop.wait).start()
    stop.wait()


def waits_for_tokens() -> None:
    tokens = threading.Semaphore(1)

    def taker() -> None:
        while tokens.acquire():
            pass

    run(taker)


def silent_bell() -> None:
    bells = [_thread.allocate_lock() for _ in range(2)]

    def waiter(bell: _thread.LockType) -> None:
        bell.acquire()
        bell.acquire()

    for bell in bells:
        _thread.start_new_thread(waiter, (bell,))
    while not bells[1].locked():
        time.sleep(0.01)
    bells[1].release()
    time.sleep(1000)


def every_kind_of_wait() -> None:
    event, told, never = threading.Event(), threading.Condition(), concurrent.futures.Future()

    def waits() -> None:
        with told:
            told.wait()

    for target in (event.wait, waits, never.result, threading.Semaphore(0).acquire):
        threading.Thread(target=target, daemon=True).start()
    time.sleep(1000)


CASES = [
    starved_pool, nested_monitor, lost_notify, full_queue, crosswise_events, module_that_waits,
    lock_taken_twice, lock_taken_twice_beside_others, two_orders, absent_at_barrier, idle_worker, idle_service,
    idle_feeder, told_to_stop, waits_for_tokens, silent_bell, every_kind_of_wait,
]  # fmt: skip


def look(pid: int) -> list[str]:
    """Return the states of the threads of a process, and the number of their sleeps."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        text = (task / "status").read_text()
        found += [line for line in text.splitlines() if line.startswith(("State", "voluntary"))]
    return found


def kill_at_rest(child: subprocess.Popen[str]) -> None:
    before, same = [], 0
    while same < 4:
        time.sleep(0.03)
        now = look(child.pid)
        asleep = all("S (" in line for line in now if line.startswith("State"))
        same = same + 1 if asleep and now == before else 0
        before = now
    child.send_signal(signal.SIGKILL)
    child.wait()


def main() -> None:
    if sys.argv[1:]:
        print(sys.argv[1], os.getpid(), flush=True)
        globals()[sys.argv[1]]()
        return
    for case in CASES:
        command = [sys.executable, "-S", __file__, case.__name__]
        with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as child:
            print(child.stdout.readline(), end="", flush=True)
            kill_at_rest(child)


main()
