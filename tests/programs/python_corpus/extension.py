"""A lock that is kept during calls of an extension module."""

import sys
import threading

from witness import keeps, until_blocked, waits

try:
    import numpy
except ImportError:
    sys.exit()

lock, taken, caller = threading.Lock(), [], threading.get_native_id()


def multiply():
    lock.acquire(); keeps()
    taken.append(1)
    until_blocked(caller)
    matrix = numpy.ones((300, 300))
    for _ in range(20):
        matrix = matrix @ matrix / 300
    lock.release(); keeps()


def take(values):
    with waits("contended"): lock.acquire()
    return values


threading.Thread(target=multiply).start()
while not taken:
    numpy.sort(numpy.arange(1000))
numpy.apply_along_axis(take, 0, numpy.ones(1))
