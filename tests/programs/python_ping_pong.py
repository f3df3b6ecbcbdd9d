"""Two threads that hand two locks to one another as often as the argument says."""

import sys
import threading

ROUNDS = int(sys.argv[1])

there, back = threading.Lock(), threading.Lock()
there.acquire()
back.acquire()


def other():
    for _ in range(ROUNDS):
        there.acquire()
        back.release()


thread = threading.Thread(target=other)
thread.start()
for _ in range(ROUNDS):
    there.release()
    back.acquire()
thread.join()
