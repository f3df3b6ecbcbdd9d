"""Processes with only blocked threads."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding


@finding("stuck", severity="error")
def stuck(trace: Trace) -> Iterator[Found]:
    """All threads of a process are blocked for ever, for another reason than the findings above.

    Every thread of the process has ended or is blocked without a time limit. No thread is left that
    could let one of them continue. Their waits may be of any kind. For example, two threads each
    wait on a condition for the other thread to signal. In a *nested monitor*, a thread waits on a
    condition while it keeps a lock, and the only thread that could signal needs this lock. Waits
    for locks that are compiled into programs, such as the locks of Rust, count too. Nobody knows
    the holders of these locks, so this finding shows their deadlocks. It is reported only if no
    other finding of this group says why.

    Nothing is reported if something else may still come:

    - A thread is in none of the calls that PTT knows. It may sleep, or read from a file descriptor.
    - Other processes of the recording have the object too.
    - A thread waits for a futex of unknown purpose.
    - A wake-up was given when the trace ended.

    PTT does not see threads that the C library starts by itself, for timers and asynchronous input
    and output. If a signal ends a program while all its threads wait for work that none of them can
    bring, the program counts as stuck. A server does not: one of its threads waits for signals or
    for input.

    Semaphores have more rules, because a signal handler may post a semaphore. If a module of the
    process installs handlers and a module posts, the finding is a warning. If the kernel may send
    signals by itself, for timers and asynchronous input and output, nothing is reported. A process
    is reported only in these cases:

    - A thread waits for another thread: for the holder of a lock, for the end of a thread that was
      joined already, or for threads that share the units of a semaphore.
    - One thread is left, and a thread that has ended used to post the semaphore for it.

    In Python, a wait for a result, for room in a queue or at a barrier counts. A wait for an event
    or a condition counts too, unless the first thread also waits for an event: a signal handler of
    Python may set it. Threads that wait in `Queue.get()` or for a `Semaphore` are idle, and so are
    threads that join them.
    """
    for fact in trace.facts("all-blocked"):
        parts = fact.waits
        alone = len(parts) == 1
        what = "the only thread of this process is" if alone else "all threads are"
        more = fact.value - len(parts)
        unless = ", unless a signal handler posts a semaphore" if fact.unless_handler else ""
        wake = f"nobody is left to wake {'it' if alone else 'them'}"
        if more > 0:
            parts.append(f"{more} more wait")
            what = f"all {fact.value} threads are"
        title = f"{what} blocked for ever, and {wake}{unless}"
        yield fact.found(
            f"{title}: {'; '.join(parts)}",
            title=title,
            severity="warning" if fact.unless_handler else None,
        )
