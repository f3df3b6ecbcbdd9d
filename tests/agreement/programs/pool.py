"""Several pools of threads in turn, each with its own lock, and a pool of processes."""

import multiprocessing
import queue
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor


class Pool:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: queue.Queue[int | None] = queue.Queue()
        self.free = threading.Semaphore(2)

    def work(self) -> None:
        while self.jobs.get() is not None:
            with self.lock:
                time.sleep(0.0005)
            with self.free:
                time.sleep(0.0005)


def square(number: int) -> int:
    time.sleep(0.001)
    return number * number


def run() -> None:
    pool = Pool()
    threads = [threading.Thread(target=pool.work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(40):
        pool.jobs.put(number)
    for _ in threads:
        pool.jobs.put(None)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    for _ in range(2):
        run()
    with ThreadPoolExecutor(3) as executor:
        list(executor.map(square, range(12)))
    if "processes" in sys.argv:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(2, mp_context=context) as processes:
            list(processes.map(square, range(12)))
