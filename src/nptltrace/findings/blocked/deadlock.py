"""Threads that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("deadlock", severity="error")
def deadlock(trace: Trace) -> Iterator[Found]:
    """Threads wait for each other, and none of the waits ended.

    A cycle of waits, each for what the thread of the next one has: a mutex, a spin lock, a rwlock
    held for writing or by readers, the end of a thread, the routine of a `once`, a semaphore of
    value 1 that has only been posted by the thread that took it. A reader that no writer keeps out
    waits for a writer that came before it. A thread that was signalled and has not got its mutex
    back waits for its owner. Waits with a time limit are no part of a cycle, and a cycle of which
    one wait has ended after all is dropped. The events before say which thread holds a lock;
    where the lock was taken before the trace begins, or only waits are recorded, the lock itself
    said it when the wait began.

    A process that was forked while another thread of its parent held a lock has the lock, but not
    the thread. A thread that waits there for such a lock, and does so to the end of the trace, is
    reported as a deadlock as well: no thread can release it. This holds for mutexes, for rwlocks,
    and for semaphores of value 1 that are used as locks, such as the locks of Python up to 3.13.

    The GIL of CPython counts as a lock: a thread that waits for it asks again every few
    milliseconds, so the time limit of its waits ends nothing.

    At a barrier the others are waited for. When all threads of a process are blocked, and one of
    them waits for a lock of a thread at an incomplete barrier, that is reported as a deadlock too.
    """
    for fact in trace.facts("wait-cycle"):
        yield fact.found(_message(fact), severity="warning" if fact.harmless else None)


def _message(fact: Fact) -> str:
    steps = fact.steps
    if fact.refused:
        refused = steps[-1]
        text = f"{refused.thread} would have waited for ever{refused.at}: the call was refused"
        other = f", as {steps[0].thread} {steps[0].text}" if len(steps) > 1 else ""
        return f"{text} with {refused.error}{other}"
    if steps[-2].what == "forked":
        forked, wait = steps[-2:]
        text = f"{wait.thread} waits for {wait.object}{wait.at} for ever: {wait.other} held it when"
        if forked.other_id == forked.thread_id:
            return f"{text} it forked this process{forked.at}, and no thread here releases it"
        return f"{text} {forked.thread} forked this process{forked.at}, and does not exist here"
    return "; ".join(fact.waits)
