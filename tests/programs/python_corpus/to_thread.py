"""A lock in a thread that a loop of asyncio has started."""

import asyncio
import threading

from witness import keep, waits

lock = threading.Lock()


def work():
    keep(lock)
    with waits("contended"): lock.acquire()


async def main():
    await asyncio.get_running_loop().run_in_executor(None, work)


asyncio.run(main())
