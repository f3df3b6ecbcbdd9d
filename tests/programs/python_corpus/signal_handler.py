"""A lock in a signal handler."""

import os
import signal
import threading

from witness import keep, waits

lock = threading.Lock()


def handle(number, frame):
    with waits("contended"): lock.acquire()


signal.signal(signal.SIGUSR1, handle)
keep(lock)
os.kill(os.getpid(), signal.SIGUSR1)
