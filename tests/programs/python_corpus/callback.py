"""A lock in a function that C calls."""

import ctypes
import threading

from witness import keep, waits

lock = threading.Lock()


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(a, b):
    with waits("contended"): lock.acquire()
    lock.release()
    return 0


keep(lock)
ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
