"""The waits and holders of a program, in its own words: places, objects and lines.

`with waits("contended"): lock.acquire()` prints its own line, as a line that waits. `keeps()`
prints its line as a line that took or released a lock that others waited for.
"""

import json
import os
import sys
import threading
import time

SAID = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_APPEND)
PAUSE = 0.03
LOOKS = 12


def say(what, frame, **more):
    place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    tid = threading.get_native_id()
    line = {"what": what, "pid": os.getpid(), "tid": tid, "place": place, **more}
    os.write(SAID, json.dumps(line).encode() + b"\n")


class waits:
    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        return self

    def __exit__(self, *_):
        say("waits", sys._getframe(1), kind=self.kind)


def keeps():
    say("keeps", sys._getframe(1))


def until_blocked(tid):
    """Wait until a thread has slept in the same futex call for a while."""
    looks = []
    while len(looks) < LOOKS or len(set(looks)) > 1 or looks[0][:1] != ("202",):
        time.sleep(0.002)
        with open(f"/proc/self/task/{tid}/syscall") as file:
            looks = [*looks[1 - LOOKS :], tuple(file.read().split()[:4])]


def soon(function, *args):
    """Call a function in another thread when the caller has blocked."""
    caller = threading.get_native_id()

    def call():
        until_blocked(caller)
        time.sleep(PAUSE)
        function(*args)

    threading.Thread(target=call).start()


def keep(lock):
    """Have another thread keep a lock until the caller has waited for it."""
    caller, kept = threading.get_native_id(), []

    def hold():
        lock.acquire(); keeps()
        kept.append(1)
        until_blocked(caller)
        time.sleep(PAUSE)
        lock.release(); keeps()

    thread = threading.Thread(target=hold)
    thread.start()
    while not kept:
        time.sleep(0.001)
    return thread
