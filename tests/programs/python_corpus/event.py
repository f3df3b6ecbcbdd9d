"""An event."""

import threading

from witness import soon, waits

came = threading.Event()
soon(came.set)
with waits("idle"): came.wait()
never = threading.Event()
with waits("timeout"): never.wait(0.05)
