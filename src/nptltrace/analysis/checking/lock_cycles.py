"""Cycles of lock orders: reported by `ptt check`, or left out for a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace._binding import libptttrack_facts
from nptltrace._dataclasses import dataclass
from nptltrace.trace.filtered import knows_orders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nptltrace.trace.traceset import Traceset

__all__ = ["CycleLock", "LockCycle", "lock_cycles"]

_CYCLE, _PREVENTED, _DEADLOCK = (
    libptttrack_facts.FACTS.index(name)
    for name in ("order-cycle", "order-cycle-prevented", "wait-cycle")
)


@dataclass(frozen=True, slots=True)
class CycleLock:
    """A lock of a cycle.

    Attributes:
        process: Number of the process in the traceset.
        kind: Kind of the lock: number of a domain of the catalogue.
        address: Address of the lock.
        ts_ns: Time when a thread asked for the lock while it held the lock before.
        site: Number of the call site where the thread asked for the lock; 0 if unknown.
        asker: Number of that thread's process. Processes can share a lock.
        held_site: Number of the call site where the thread took the lock before; 0 if unknown.
    """

    process: int
    kind: int
    address: int
    ts_ns: int
    site: int
    asker: int
    held_site: int


@dataclass(frozen=True, slots=True)
class LockCycle:
    """A cycle of locks: a thread asked for each lock while it held the lock before.

    Attributes:
        ts_ns: Time when the trace shows the cycle, in ns since the traceset's start.
        process: Number of the process in the traceset.
        tids: Kernel thread ids of the threads that asked, in the order of the locks.
        locks: The locks of the cycle.
        suppressed: Why the cycle is not reported, such as `gate`; empty if it is reported. The
            finding `lock-order-inversion` explains the words.
    """

    ts_ns: int
    process: int
    tids: tuple[int, ...]
    locks: tuple[CycleLock, ...]
    suppressed: tuple[str, ...]


def lock_cycles(source: Traceset, check: libptttrack_facts.Check) -> list[LockCycle]:
    """Return the cycles of lock orders of a traceset, the earliest first.

    Args:
        source: The opened traces.
        check: A checker that has seen all events.
    """
    facts, steps, threads = (
        check.table("facts")[1:],
        check.table("steps"),
        check.table("threads"),
    )
    complete = knows_orders(source)

    def steps_of(fact: Any) -> NDArray[Any]:
        first = int(fact["first_step"])
        rows: NDArray[Any] = steps[first : first + int(fact["steps"])]
        return rows

    deadlocks = [
        (int(fact["process"]), set(steps_of(fact)["object"].tolist()))
        for fact in facts[facts["kind"] == _DEADLOCK]
        if not int(fact["flags"]) & libptttrack_facts.DROPPED
    ]
    cycles = []
    for fact in facts[(facts["kind"] == _CYCLE) | (facts["kind"] == _PREVENTED)]:
        # The steps of a cycle are pairs: a thread took a lock, and asked for the next one.
        took, asked = steps_of(fact)[::2], steps_of(fact)[1::2]
        reasons = list(_reasons(fact, complete=complete))
        locks = set(asked["object"].tolist())
        if any(int(fact["process"]) == process and locks <= all_ for process, all_ in deadlocks):
            reasons.append("deadlock")
        cycles.append(
            LockCycle(
                ts_ns=int(fact["ts"]),
                process=int(fact["process"]),
                tids=tuple(int(tid) for tid in threads["tid"][asked["thread"]]),
                locks=tuple(
                    CycleLock(
                        process=int(step["process"]),
                        kind=int(step["kind"]),
                        address=int(step["object"]),
                        ts_ns=int(step["ts"]),
                        site=int(step["site"]),
                        asker=int(threads["process"][step["thread"]]),
                        held_site=int(held["site"]),
                    )
                    for held, step in zip(took, asked, strict=True)
                ),
                suppressed=tuple(reasons),
            )
        )
    return sorted(cycles, key=lambda cycle: cycle.ts_ns)


def _reasons(fact: Any, *, complete: bool) -> Iterator[str]:
    """Yield why a cycle is not reported, except for the reason `deadlock`."""
    flags, value = int(fact["flags"]), int(fact["value"])
    if fact["kind"] == _PREVENTED:
        bits = enumerate(libptttrack_facts.PREVENTED)
        yield from [word for bit, word in bits if value >> bit & 1] or ["covered"]
    elif flags & libptttrack_facts.DROPPED or not complete:
        yield "incomplete"
    if flags & libptttrack_facts.SUSPECT:
        yield "memory"
