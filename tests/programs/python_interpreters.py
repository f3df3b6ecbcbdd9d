"""Two interpreters beside the first one, each with a lock of its own that two threads want."""

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
