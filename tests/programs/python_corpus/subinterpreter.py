"""A sub-interpreter with a lock, before a lock of the main interpreter."""

import threading

from witness import keep, waits

CODE = """
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire(timeout=0.05)
"""

try:
    import _xxsubinterpreters as interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        interpreters = None
if interpreters:
    made = interpreters.create()
    getattr(interpreters, "run_string", interpreters.__dict__.get("exec"))(made, CODE)
    interpreters.destroy(made)
lock = threading.Lock()
keep(lock)
with waits("contended"): lock.acquire()
