"""Locks that are taken in orders that can deadlock."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding
from nptltrace.findings.facts import listed


@finding("lock-order-inversion", severity="warning")
def lock_order_inversion(trace: Trace) -> Iterator[Found]:
    """Threads take locks in different orders, which can deadlock.

    An *order* is a lock that a thread holds and a lock that the thread asks for. PTT reports a
    cycle of orders, of any length, only if the cycle can close:

    - The orders are of different threads, one order each.
    - No two of these threads held another lock in common at that moment (a *gate*), unless both
      only read. If a thread holds more than 64 locks at once, its orders are not kept; `ptt check`
      says so.
    - No semaphore had too few units for the threads of the cycle that held a unit of it. This rule
      needs threads that give back the units they took, and a semaphore of one process.
    - At each lock, one of the two threads has or wants the lock alone: readers do not keep readers
      out. There is an exception for rwlocks that were initialized to prefer writers
      (`PREFER_WRITER_NONRECURSIVE_NP`). There, readers count if another thread asked for the lock
      for writing, and nothing keeps that thread from coming between them.
    - No request was a try or had a time limit: such requests do not wait for ever. A lock that was
      taken by a try counts as held.
    - No creation of a thread, join or barrier puts one of the orders before another. Semaphores,
      conditions and other ways to inform a thread do not count: they often put things in an order
      that is not necessary.
    - No lock of the cycle may be another lock at the same address. Two kinds of locks are certain:
      locks that a call initialized, and locks in the static data of the program and of the
      libraries it is linked with. Locks on the stack of the first thread are certain while that
      thread only creates and joins threads. For other locks, the trace does not say when their
      memory was freed. These locks lie on a heap or another stack, and no call initialized them.
      Their cycles are left out and counted on standard error; `--suspects` shows them.

    The table `lock_cycles` of `ptt sql` and the viewer's panel of the lock order have all cycles.
    The reason is empty for a cycle that is reported. The reasons `gate`, `one-thread`, `shared`,
    `try`, `apart` (in time) and `memory` are the rules above. The other reasons are `incomplete`
    (events are missing), `deadlock` (it happened) and `covered` (all its orders are part of
    reported cycles).

    A condition wait that takes its mutex back asks for the mutex like any other request. A
    `deadlock` that happened is not reported again as possible.
    """
    happened = [(fact.process, set(fact.objects)) for fact in trace.facts("wait-cycle")]
    for fact in trace.facts("order-cycle"):
        locks = set(fact.objects)
        if any(process == fact.process and locks <= others for process, others in happened):
            continue
        parts = [
            f"{held.thread} asked for {asked.object}{asked.at} while it held {held.object}"
            for held, asked in zip(fact.steps[::2], fact.steps[1::2], strict=True)
        ]
        readers = ", once a writer waits, which keeps readers out" if fact.value else ""
        taken = listed(step.object for step in fact.steps if step.what == "took")
        yield fact.found(
            f"locks are taken in orders that can deadlock{readers}: {'; '.join(parts)}",
            title=f"threads take {taken} in different orders, which can deadlock{readers}",
        )
