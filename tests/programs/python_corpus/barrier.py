"""A barrier."""

import threading

from witness import soon, waits

both = threading.Barrier(2)
soon(both.wait)
with waits("idle"): both.wait()
