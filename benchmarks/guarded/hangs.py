# SPDX-License-Identifier: MIT
"""Programs that hang, one for each argument; the head of hangs.c explains the comments.

case locks: deadlock
case self_lock: stuck|self-deadlock
case condition: stuck
case queue: after
case unfinished: stuck
case pool: stuck
case joins: deadlock|stuck
case forked: deadlock|stuck
case results: deadlock|stuck
case child: deadlock|stuck
case gil: deadlock
case barrier: stuck
case event: stuck
case semaphores: stuck
case loop: stuck
"""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

left, right = threading.Lock(), threading.Lock()
meeting = threading.Barrier(2)


def run(*functions: Callable[[], None]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def locks() -> None:
    def left_right() -> None:
        with left:
            meeting.wait()
            with right:  # hangs: locks
                pass

    def right_left() -> None:
        with right:
            meeting.wait()
            with left:  # hangs: locks
                pass

    run(left_right, right_left)


def self_lock() -> None:
    left.acquire()
    left.acquire()  # hangs: self_lock


def condition() -> None:
    ready = threading.Condition()

    def waits() -> None:
        with ready:
            ready.wait()  # hangs: condition

    run(waits, waits)


def queue_without_producer() -> None:
    jobs: queue.Queue[int] = queue.Queue()

    def produces() -> None:
        raise SystemExit

    def consumes() -> None:
        jobs.get()  # hangs: queue

    run(produces, consumes)


def unfinished() -> None:
    jobs: queue.Queue[int] = queue.Queue()
    jobs.put(1)
    jobs.get()
    jobs.join()  # hangs: unfinished


def pool() -> None:
    executor = ThreadPoolExecutor(2)

    def outer() -> int:
        meeting.wait()
        return executor.submit(int).result()  # hangs: pool

    results = [executor.submit(outer), executor.submit(outer)]
    for result in results:
        result.result()


def joins() -> None:
    threads: list[threading.Thread] = []

    def joins_other(number: int) -> None:
        meeting.wait()
        threads[1 - number].join()  # hangs: joins

    threads += [threading.Thread(target=joins_other, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()


def forked() -> None:
    def holds() -> None:
        with left:
            meeting.wait()
            over.wait()

    def needs() -> None:
        with left:  # hangs: forked
            pass

    over = threading.Event()
    holder = threading.Thread(target=holds)
    holder.start()
    meeting.wait()
    child = multiprocessing.get_context("fork").Process(target=needs)
    child.start()
    child.join()
    over.set()
    holder.join()


def put_much(results: multiprocessing.Queue[str]) -> None:
    results.put("x" * (1 << 20))


def results() -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=put_much, args=(results,))
    child.start()
    child.join()  # hangs: results


def child() -> None:
    code = "import sys; sys.stdout.write('x' * (1 << 20)); sys.stdout.flush()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.wait()  # hangs: child


def gil() -> None:
    # One thread waits for a mutex of C and keeps the GIL; the holder of the mutex needs the GIL.
    mutex = ctypes.create_string_buffer(64)
    keeps, gives = ctypes.PyDLL(None), ctypes.CDLL(None)
    began = threading.Event()

    def takes() -> None:
        gives.pthread_mutex_lock(mutex)
        began.set()
        sum(range(1 << 24))
        gives.pthread_mutex_unlock(mutex)

    def takes_too() -> None:
        began.wait()
        keeps.pthread_mutex_lock(mutex)  # hangs: gil

    run(takes, takes_too)


def barrier() -> None:
    gate = threading.Barrier(3)

    def comes() -> None:
        gate.wait()  # hangs: barrier

    run(comes, comes)


def event() -> None:
    stopped = threading.Event()

    def waits() -> None:
        stopped.wait()  # hangs: event

    run(waits)


def semaphores() -> None:
    ping, pong = threading.Semaphore(0), threading.Semaphore(0)

    def first() -> None:
        ping.acquire()  # hangs: semaphores
        pong.release()

    def second() -> None:
        pong.acquire()  # hangs: semaphores
        ping.release()

    run(first, second)


def loop() -> None:
    async def answers() -> int:
        return 1

    async def asks() -> None:
        here = asyncio.get_running_loop()
        asyncio.run_coroutine_threadsafe(answers(), here).result()  # hangs: loop

    asyncio.run(asks())


CASES = {
    "locks": locks, "self_lock": self_lock, "condition": condition,
    "queue": queue_without_producer, "unfinished": unfinished, "pool": pool, "joins": joins,
    "forked": forked, "results": results, "child": child, "gil": gil, "barrier": barrier,
    "event": event, "semaphores": semaphores, "loop": loop,
}  # fmt: skip

if __name__ == "__main__":
    CASES[sys.argv[1]]()
