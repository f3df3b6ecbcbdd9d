"""Two locks with holders that wait for one another in turn."""

import threading

from witness import keep, keeps, until_blocked, waits

first, second = threading.Lock(), threading.Lock()
taken, main = [], threading.get_native_id()


def chained():
    first.acquire(); keeps()
    taken.append(1)
    until_blocked(main)
    keep(second)
    with waits("contended"): second.acquire()
    first.release(); keeps()


thread = threading.Thread(target=chained)
thread.start()
while not taken:
    pass
with waits("contended"): first.acquire()
