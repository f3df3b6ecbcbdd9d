"""Processes in which nobody is left to wake anybody."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Found, Trace, finding


@finding("stuck", severity="error")
def stuck(trace: Trace) -> Iterator[Found]:
    """All threads of a process are blocked for ever, for another reason than those above.

    Every thread of a process has ended or is blocked without a time limit, and none is left that
    could let one of them go on, whatever they wait for: two threads that each wait on a condition
    for the other to signal, or a *nested monitor*, a thread that waits on a condition while it
    keeps a lock that the only thread to signal needs. Locks that are compiled into programs, as
    Rust's, are among what is waited for, and nobody knows who holds them: this is how their
    deadlocks are found. It is reported where no other finding of this group says why. Nothing is
    reported where something else may come: a thread that is in none of the calls that PTT knows (it
    may sleep, or read from a file descriptor), an object that other processes of the recording have
    too, a wait by system call of which it is not known what waits, or a wake-up that was given when
    the trace ended. Threads that the C library starts by itself, for timers and asynchronous input
    and output, are not seen. A program that is ended by a signal while all its threads wait for
    work that none of them can bring counts as stuck: a server waits for signals or for input in one
    of its threads.

    Semaphores have further rules. A signal handler may post one: of a process with a module that
    installs handlers, and one that posts, it is a warning, and nothing if the kernel may send
    signals by itself, for timers and asynchronous input and output. A process is reported only if a
    thread is kept by another one: by the holder of a lock, by the end of a thread that was joined
    already, or by threads that share the units of a semaphore among them; or if one thread is left,
    and another one that has ended used to post the semaphore for it. In Python, a wait for a
    result, for room in a queue or at a barrier counts, and so does a wait for an event or a
    condition, unless the first thread waits for an event as well: a handler of Python may set it.
    Threads that wait in `Queue.get()` or for a `Semaphore`, and those that join them, are idle.
    """
    for fact in trace.facts("all-blocked"):
        parts = fact.waits
        alone = len(parts) == 1
        what = "the only thread of this process is" if alone else "all threads are"
        more = fact.value - len(parts)
        if more > 0:
            parts.append(f"{more} more wait")
        unless = ", unless a signal handler posts a semaphore" if fact.unless_handler else ""
        yield fact.found(
            f"{what} blocked for ever, and nobody is left to wake one{unless}: {'; '.join(parts)}",
            severity="warning" if fact.unless_handler else None,
        )
