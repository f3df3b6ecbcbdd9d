"""steps.py - a Python program that adds events of its own to the trace.

    ptt record -o run.ptt -- python3 steps.py && ptt view run.ptt

Run without a tracer, the calls do nothing.
"""

import threading

import nptltrace


def work(name: str) -> None:
    """Do nothing much, and say so."""
    nptltrace.user_event(f"{name} begins")
    sum(range(10_000))
    nptltrace.user_event(f"{name} is done")


threads = [threading.Thread(target=work, args=(f"step {i}",)) for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
nptltrace.user_event("all done", domain=1, event=2)
print("3 steps")
