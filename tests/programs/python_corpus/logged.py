"""The lock of a handler of `logging`."""

import logging
import os

from witness import keep, waits

handler = logging.FileHandler(os.devnull)
logging.getLogger().addHandler(handler)
keep(handler.lock)
with waits("contended"): handler.lock.acquire()
handler.lock.release()
