"""A lock in a coroutine, which stops the loop."""

import asyncio
import threading

from witness import keep, waits

lock = threading.Lock()


async def inner():
    keep(lock)
    with waits("contended"): lock.acquire()


async def outer():
    await asyncio.gather(inner(), asyncio.sleep(0.001))


asyncio.run(outer())
