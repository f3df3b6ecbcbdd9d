"""A lock in methods that Python calls by itself."""

import threading

from witness import keep, waits


class Store:
    def __init__(self):
        self.lock = threading.Lock()
        keep(self.lock)
        with waits("contended"): self.lock.acquire()
        self.lock.release()

    @property
    def value(self):
        keep(self.lock)
        with waits("contended"): self.lock.acquire()
        self.lock.release()

    def __getitem__(self, key):
        keep(self.lock)
        with waits("contended"): self.lock.acquire()
        self.lock.release()

    def __del__(self):
        keep(self.lock)
        with waits("contended"): self.lock.acquire()


store = Store()
store.value
store[1]
del store
