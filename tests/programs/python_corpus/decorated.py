"""A lock in a decorator and in a context manager."""

import contextlib
import functools
import threading

from witness import keep, waits

lock = threading.Lock()


def locked(function):
    @functools.wraps(function)
    def call(*args):
        with waits("contended"): lock.acquire()
        try:
            return function(*args)
        finally:
            lock.release()

    return call


@locked
def work():
    pass


@contextlib.contextmanager
def taken():
    with waits("contended"): lock.acquire()
    yield
    lock.release()


keep(lock)
work()
keep(lock)
with taken():
    pass
