"""Events of synthetic traces for the page: threads that hold locks and wait for locks."""

from __future__ import annotations

from typing import Any

from tests.trace.builder import Event

__all__ = ["MS", "T0", "A", "B", "free", "process", "taken", "waits"]

T0 = 10**12
MS = 10**6
A, B = 0x404040, 0x404080


def taken(ms: int, lock: int, site: int, waited_ms: int = 0) -> Event:
    """Return the event of taking a lock, after a wait or without a wait."""
    if not waited_ms:
        return Event(T0 + ms * MS, "MUTEX_TAKEN", lock, site)
    fields = {"result": 0, "wait_ns": waited_ms * MS}
    return Event(T0 + ms * MS, "MUTEX_TAKEN", lock, site, variant="WAITED", fields=fields)


def free(ms: int, lock: int, site: int) -> Event:
    return Event(T0 + ms * MS, "MUTEX_FREE", lock, site)


def waits(ms: int, lock: int, owner: int, site: int) -> Event:
    return Event(T0 + ms * MS, "MUTEX_WAIT", lock, site, fields={"owner": owner})


def process(index: int, names: dict[int, str]) -> list[dict[str, Any]]:
    """Return the description of a process with these threads."""
    known: list[dict[str, Any]] = [
        {"process": {"index": index, "pid": 100 + index, "exe": "/bin/x", "cmdline": ["x"]}},
        {"sites": {"process": index, "sites": {str(n): hex(0x500000 + n) for n in range(1, 20)}}},
    ]
    return [
        *known,
        *({"thread": {"process": index, "tid": t, "name": n}} for t, n in names.items()),
    ]
