"""Two threads hand two locks to each other; arguments are the number of times and of calls."""

import sys
import threading

ROUNDS, DEPTH = map(int, sys.argv[1:])

there, back = threading.Lock(), threading.Lock()
there.acquire()
back.acquire()


def other():
    for _ in range(ROUNDS):
        there.acquire()
        back.release()


def one():
    thread = threading.Thread(target=other)
    thread.start()
    for _ in range(ROUNDS):
        there.release()
        back.acquire()
    thread.join()


def down(depth):
    if depth:
        down(depth - 1)
    else:
        one()


down(DEPTH)
