"""Two more interpreters; each has its own lock, and two threads want that lock."""

import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

SPIN = """
import threading
def spin():
    found = 0
    for n in range(1_000_000):
        found += n
    return found
threads = [threading.Thread(target=spin) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def run():
    one = interpreters.create()
    interpreters.run_string(one, SPIN)
    interpreters.destroy(one)


threads = [threading.Thread(target=run) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
