"""Locks that are taken in orders that can deadlock."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding


@finding("lock-order-inversion", severity="warning")
def lock_order_inversion(trace: Trace) -> Iterator[Found]:
    """Threads take locks in different orders, which can deadlock.

    A cycle of orders. An order is a lock that a thread asked for while it held another. A cycle of
    any length is reported only if it can close:

    - its orders are of different threads, one each;
    - no two of these threads held a lock in common at that moment (a *gate*), unless both only
      read. Of a thread that holds more than 64 locks at once the orders are not kept; `ptt check`
      says so;
    - no semaphore had too few units for those of them that had one. That is so as long as each
      thread gives back the units that it took, and only of semaphores of one process;
    - at each lock, one of the two has or wants it alone: readers do not keep readers out. They do
      where a rwlock was initialized to prefer writers (`PREFER_WRITER_NONRECURSIVE_NP`), and
      another thread, which nothing keeps from coming then, asked for it for writing;
    - none of the requests was a try, or had a time limit: those do not wait for ever. What was got
      by trying is held all the same;
    - no creation of a thread, join or barrier puts one of the orders before another. Semaphores,
      conditions and other ways in which threads inform each other are not counted, for they happen
      to put things in an order more often than they must;
    - no lock of the cycle may be another lock that came to lie at the same address. Locks that were
      initialized by a call, and those in the static data of the program and of the libraries it is
      linked with, are the same ones throughout; those on the stack of the first thread while it
      does nothing but create and join others. Of the rest, on a heap or another stack and never
      initialized by a call, the trace does not say when their memory was freed. Such cycles are
      left out, and counted on standard error; `--suspects` shows them.

    Cycles that are not reported stand in the table `lock_cycles` of `ptt sql` and in the viewer's
    panel of the lock order, with the reasons: `gate`, `one-thread`, `shared`, `try`, `apart` (in
    time) and `memory`, as above; `incomplete`, when events are missing; `deadlock`, when it
    happened; `covered`, when all its orders are part of cycles that are reported.

    A condition wait that takes its mutex back asks for it like any other. What has happened as a
    `deadlock` is not reported as possible once more.
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
        yield fact.found(
            f"locks are taken in orders that can deadlock{readers}: {'; '.join(parts)}"
        )
