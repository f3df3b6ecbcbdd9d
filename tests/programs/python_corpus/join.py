"""The ends of threads; one thread takes a lock."""

import threading
import time

from witness import waits


class Slow(threading.Thread):
    def run(self):
        time.sleep(0.05)


slow = Slow(name="slow")
slow.start()
with waits("join"): slow.join()
timer = threading.Timer(0.05, print)
timer.start()
with waits("join"): timer.join(10)
