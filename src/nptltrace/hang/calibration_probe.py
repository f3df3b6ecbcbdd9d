"""A program: its threads wait in the C library, and it prints where they sleep, as JSON.

It runs as a file of its own, without site packages. `calibration.py` has the same offsets.
"""

from __future__ import annotations

import ctypes  # noqa: TID251 -- this program runs without the package
import json
import os
import sys
import threading
import time
from pathlib import Path

_FUTEX, _SIZE, _PATIENCE_S = "202", 512, 3.0
_ONCE = ctypes.CFUNCTYPE(None)


def main() -> None:
    """Let the threads wait, and print the offsets."""
    library = ctypes.CDLL(None)
    names = ("mutex", "read", "write", "barrier", "semaphore", "once")
    objects = {name: ctypes.create_string_buffer(_SIZE) for name in names}
    nobody = ctypes.create_string_buffer(_SIZE)
    library.sem_init(nobody, 0, 0)
    library.sem_init(objects["semaphore"], 0, 0)
    library.pthread_barrier_init(objects["barrier"], None, 2)
    runs = _ONCE(lambda: library.sem_wait(nobody))
    ready = threading.Event()
    holder: list[int] = []

    def hold() -> None:
        library.pthread_mutex_lock(objects["mutex"])
        library.pthread_rwlock_wrlock(objects["read"])
        library.pthread_rwlock_rdlock(objects["write"])
        holder.append(threading.get_native_id())
        ready.set()
        library.pthread_once(objects["once"], runs)

    waits = {
        "mutex": lambda: library.pthread_mutex_lock(objects["mutex"]),
        "read": lambda: library.pthread_rwlock_rdlock(objects["read"]),
        "write": lambda: library.pthread_rwlock_wrlock(objects["write"]),
        "next": lambda: library.pthread_rwlock_wrlock(objects["write"]),
        "barrier": lambda: library.pthread_barrier_wait(objects["barrier"]),
        "semaphore": lambda: library.sem_wait(objects["semaphore"]),
        "once": lambda: library.pthread_once(objects["once"], runs),
    }
    threading.Thread(target=hold, daemon=True).start()
    ready.wait()
    asleep(holder[0])
    found: dict[str, int] = {}
    for name, wait in waits.items():
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        place = objects["write" if name == "next" else name]
        offset = asleep(thread.native_id or 0) - ctypes.addressof(place)
        if 0 <= offset < _SIZE:
            found[name] = offset
    for name, of in (("owner", "mutex"), ("writer", "read")):
        at = objects[of].raw.find(holder[0].to_bytes(4, sys.byteorder))
        if at >= 0:
            found[name] = at
    print(json.dumps(found), flush=True)
    os._exit(0)


def asleep(tid: int) -> int:
    """Return the address of the futex on which a thread sleeps; 0 if it does not soon sleep."""
    call, until = Path(f"/proc/self/task/{tid}/syscall"), time.monotonic() + _PATIENCE_S
    last = ""
    while time.monotonic() < until:
        words = call.read_text("ascii").split()
        # The same call twice: a thread may pass through other futexes first.
        if words[0] == _FUTEX and words[1] == last:
            return int(words[1], 16)
        last = words[1] if words[0] == _FUTEX else ""
        time.sleep(0.002)
    return 0


if __name__ == "__main__":
    main()
