"""Threads that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding
from nptltrace.findings.facts import listed


@finding("deadlock", severity="error")
def deadlock(trace: Trace) -> Iterator[Found]:
    """Threads wait for each other, and none of the waits ended.

    Each thread of the cycle waits for something that the next thread has:

    - a mutex or a spin lock
    - a rwlock that is held for writing or by readers
    - the end of the thread
    - the routine of a `once`
    - a semaphore of value 1, if only the thread that took it has posted it

    If no writer holds a rwlock, a waiting reader waits for a writer that asked before it. A
    signalled thread that has not got its mutex back waits for the owner of the mutex. Waits with a
    time limit are not part of a cycle. If a wait of a cycle ends after all, the cycle is not
    reported. Earlier events show which thread holds a lock. If the lock was taken before the trace
    begins, or if only waits are recorded, the owner was read from the lock when the wait began.

    If a thread forks while another thread holds a lock, the child process has the lock, but not its
    holder. No thread of the child can release the lock. If a thread of the child waits for it to
    the end of the trace, that is a deadlock too. This holds for mutexes, for rwlocks, and for
    semaphores of value 1 that are used as locks, such as the locks of Python up to 3.13.

    The GIL of CPython counts as a lock. A thread that waits for the GIL asks again every few
    milliseconds, so the time limit of these waits ends nothing.

    A thread at a barrier waits for all threads that have not come. If all threads of a process are
    blocked, and one of them waits for a lock of a thread at an incomplete barrier, that is a
    deadlock too.
    """
    for fact in trace.facts("wait-cycle"):
        together = not fact.refused and fact.steps[-2].what != "forked"
        yield fact.found(
            _message,
            title=f"{listed(_waiting(fact))} wait for each other" if together else "",
            severity="warning" if fact.harmless else None,
        )


def _waiting(fact: Fact) -> Iterator[str]:
    return (step.thread for step in fact.steps if step.what != "took")


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
