"""Waits for a lock in several functions in turn, at the same depth, and prints the places."""

import random
import sys
import threading
import time

choice = random.Random(int(sys.argv[1]))
lock = threading.Lock()
lock.acquire()
waits, done = threading.Semaphore(0), []

SOURCE = """
def {name}(lock):
{pad}    lock.acquire()
"""


def first(lock):
    lock.acquire()


def second(lock):
    lock.acquire()


def either(lock, line):
    if line:
        lock.acquire()
    else:
        lock.acquire()


def made(lock):
    """A lock that often has the address of an earlier lock."""
    name = choice.choice(["one", "two", "three"])
    names = {}
    lines = choice.randrange(3)
    exec(compile(SOURCE.format(name=name, pad="\n" * lines), f"{name}.txt", "exec"), names)
    names[name](lock)
    return f"({name}.txt:{3 + lines})"


def place(function, line):
    return f"({__file__.rpartition('/')[2]}:{function.__code__.co_firstlineno + line})"


def release():
    for _ in range(int(sys.argv[2])):
        waits.acquire()
        time.sleep(0.002)
        lock.release()


def wait():
    for _ in range(int(sys.argv[2])):
        case = choice.randrange(5)
        waits.release()  # asks
        if case == 0:
            first(lock)
            done.append(place(first, 1))
        elif case == 1:
            second(lock)
            done.append(place(second, 1))
        elif case == 2:
            done.append(made(lock))
        else:
            either(lock, case == 3)
            done.append(place(either, 2 if case == 3 else 4))


threads = [threading.Thread(target=release), threading.Thread(target=wait)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(threads[1].native_id, *done)
