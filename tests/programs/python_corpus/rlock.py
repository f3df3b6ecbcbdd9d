"""A lock that its thread takes several times."""

import threading

from witness import keep, waits


class Account:
    def __init__(self):
        self.lock = threading.RLock()

    def look(self):
        with self.lock:
            return 1

    def change(self):
        with waits("contended"): self.lock.acquire()
        self.look()
        self.lock.release()


account = Account()
keep(account.lock)
account.change()
