"""A wait for a condition with a predicate."""

import threading

from witness import soon, waits

changed, state = threading.Condition(), []


def change():
    with changed:
        state.append(1)
        changed.notify_all()


with changed:
    soon(change)
    with waits("idle"): changed.wait_for(lambda: state)
