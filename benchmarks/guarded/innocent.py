# SPDX-License-Identifier: MIT
"""Programs that are idle or slow, and do not hang; the argument chooses one."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import queue
import signal
import socketserver
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

LONG_S = 1e6


def sleeps() -> None:
    time.sleep(LONG_S)


def thread_pool() -> None:
    pool = ThreadPoolExecutor(8)
    list(pool.map(time.sleep, [0.1] * 8))
    sys.stdin.read()


def process_pool() -> None:
    pool = ProcessPoolExecutor(3)
    list(pool.map(time.sleep, [0.1] * 3))
    sys.stdin.read()


def pool_of_multiprocessing() -> None:
    pool = multiprocessing.Pool(3)
    pool.map(time.sleep, [0.1] * 3)
    signal.pause()


def workers() -> None:
    jobs: queue.Queue[int] = queue.Queue()
    for _ in range(4):
        threading.Thread(target=jobs.get).start()


def timer() -> None:
    ticks = threading.Event()
    while not ticks.wait(2):
        pass


def event_loop() -> None:
    async def ticks() -> None:
        asyncio.get_running_loop().call_later(3, lambda: None)
        await asyncio.sleep(LONG_S)

    asyncio.run(ticks())


def server_of_threads() -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as it:
        it.serve_forever()


def collects() -> None:
    kept: list[list[int]] = []
    while True:
        kept.append([len(kept)])
        gc.collect()


def computes() -> None:
    for _ in range(2):
        threading.Thread(target=lambda: sum(range(10**12))).start()


def child() -> None:
    subprocess.run(["sleep", str(int(LONG_S))], check=True)


def reads_child() -> None:
    code = "import time\nwhile True: print(1, flush=True); time.sleep(3)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        for _ in process.stdout or ():
            pass


def held_asleep() -> None:
    lock = threading.Lock()

    def waits() -> None:
        with lock:
            pass

    with lock:
        for _ in range(4):
            threading.Thread(target=waits).start()
        time.sleep(LONG_S)


CASES = (
    sleeps, thread_pool, process_pool, pool_of_multiprocessing, workers, timer, event_loop,
    server_of_threads, collects, computes, child, reads_child, held_asleep,
)  # fmt: skip

if __name__ == "__main__":
    next(case for case in CASES if case.__name__ == sys.argv[1])()
