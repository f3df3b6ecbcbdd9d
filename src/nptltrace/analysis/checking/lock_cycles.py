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

__all__ = ["REASONS", "CycleLock", "LockCycle", "lock_cycles"]

REASONS = {
    "gate": "two threads held another lock in common",
    "one-thread": "two of the orders are of one thread",
    "shared": "readers do not keep readers out",
    "apart": "a creation, a join or a barrier put one order before another",
    "try": "a request was a try, or had a time limit",
    "memory": "a lock may be another one that came to lie at the same address",
    "incomplete": "events are missing that may keep the orders apart",
    "deadlock": "it happened, and is reported as a deadlock",
    "covered": "its orders are in other cycles, which are reported first",
}
"""Why a cycle is not reported."""

_CYCLE, _PREVENTED, _DEADLOCK = (
    libptttrack_facts.FACTS.index(name)
    for name in ("order-cycle", "order-cycle-prevented", "wait-cycle")
)
_ASKED = libptttrack_facts.STEPS.index("asked")


@dataclass(frozen=True, slots=True)
class CycleLock:
    """A lock of a cycle.

    Attributes:
        process: Number of its process in the traceset.
        kind: What it is, a domain of the catalogue.
        address: Where.
        ts_ns: When it was asked for while the lock before it was held.
    """

    process: int
    kind: int
    address: int
    ts_ns: int


@dataclass(frozen=True, slots=True)
class LockCycle:
    """Locks each of which was asked for while the one before it was held.

    Attributes:
        ts_ns: When it showed.
        process: Number of the process in the traceset.
        tids: Kernel thread ids of the threads that asked, in the order of the locks.
        locks: The locks, each asked for while the one before it was held.
        suppressed: Why it is not reported, keys of `REASONS`; empty when it is.
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
        check: What a checker found in them.
    """
    facts, steps, tids = (
        check.table("facts")[1:],
        check.table("steps"),
        check.table("threads")["tid"],
    )
    known = knows_orders(source)

    def steps_of(fact: Any) -> NDArray[Any]:
        first = int(fact["first_step"])
        found: NDArray[Any] = steps[first : first + int(fact["steps"])]
        return found

    deadlocks = [
        (int(fact["process"]), set(steps_of(fact)["object"].tolist()))
        for fact in facts[facts["kind"] == _DEADLOCK]
        if not int(fact["flags"]) & libptttrack_facts.DROPPED
    ]
    cycles = []
    for fact in facts[(facts["kind"] == _CYCLE) | (facts["kind"] == _PREVENTED)]:
        asked = steps_of(fact)
        asked = asked[asked["what"] == _ASKED]
        reasons = list(_reasons(fact, complete=known))
        locks = set(asked["object"].tolist())
        if any(int(fact["process"]) == at and locks <= others for at, others in deadlocks):
            reasons.append("deadlock")
        cycles.append(
            LockCycle(
                ts_ns=int(fact["ts"]),
                process=int(fact["process"]),
                tids=tuple(int(tid) for tid in tids[asked["thread"]]),
                locks=tuple(
                    CycleLock(*map(int, step[["process", "kind", "object", "ts"]].tolist()))
                    for step in asked
                ),
                suppressed=tuple(reasons),
            )
        )
    return sorted(cycles, key=lambda cycle: cycle.ts_ns)


def _reasons(fact: Any, *, complete: bool) -> Iterator[str]:
    """Yield why a cycle is not reported; `deadlock` is decided elsewhere."""
    flags, value = int(fact["flags"]), int(fact["value"])
    if fact["kind"] == _PREVENTED:
        bits = enumerate(libptttrack_facts.PREVENTED)
        yield from [word for bit, word in bits if value >> bit & 1] or ["covered"]
    elif flags & libptttrack_facts.DROPPED or not complete:
        yield "incomplete"
    if flags & libptttrack_facts.SUSPECT:
        yield "memory"
