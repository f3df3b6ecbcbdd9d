"""Waits for a lock while words of its own frames are wrong, and prints that it still lives.

The words belong to the callers of the waiting function. The interpreter reads them only after the
function returns, and by then they are restored.
"""

import ctypes
import gc
import json
import random
import sys
import threading

layout = json.loads(sys.argv[1])
choice = random.Random(int(sys.argv[2]))
lock = threading.Lock()
lock.acquire()
state = ctypes.pythonapi.PyThreadState_Get
state.restype = ctypes.c_void_p


def word(address):
    return ctypes.c_uint64.from_address(address)


def innermost():
    frame = word(state() + layout["frame"]).value
    return word(frame + layout["current"]).value if layout["indirect"] else frame


def garbage(there):
    return choice.choice(
        [0, 1, 8, 4096, there ^ 8, there + 4096, id(layout), id(innermost), id("text"), 2**64 - 8]
        + [0x7FFFFFFFF000, choice.getrandbits(47) & ~7, choice.getrandbits(64)]
    )


def break_and_wait(times):
    fields = [layout[name] for name in ("previous", "code", "instruction")]
    for _ in range(times):
        frame = innermost()
        for _ in range(choice.randrange(1, 4)):
            frame = word(frame + layout["previous"]).value
        broken = word(frame + choice.choice(fields))
        kept = broken.value
        broken.value = garbage(kept)
        lock.acquire(timeout=0.0001)
        broken.value = kept


def caller(depth, times):
    if depth:
        caller(depth - 1, times)
    else:
        break_and_wait(times)


gc.disable()
caller(5, int(sys.argv[3]))
print("alive")
