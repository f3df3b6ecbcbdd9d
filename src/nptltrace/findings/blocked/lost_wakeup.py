"""Waits for a signal that has already gone."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("lost-wakeup", severity="error")
def lost_wakeup(trace: Trace) -> Iterator[Found]:
    """A thread waits on a condition for a signal that came before, or woke another thread.

    The thread waits without a time limit, to the end of the trace. One of two things has happened.

    *The signal came before the wait.* The condition was signalled when no thread waited on it, or
    broadcast when this thread did not wait on it, and it was not signalled again. Between the
    signal and the wait, no thread took the mutex to look at the data that it guards: the first hold
    was the hold that the wait gave up. So a worker that took its work and now waits for more is not
    reported. One of these must be true as well:

    - No thread can signal any more. Every thread of the process has ended, or other such threads
      block it without a time limit. (A thread that waits for a semaphore is not blocked in this
      sense if a signal handler may post the semaphore: see `stuck`.)
    - The thread that signalled had taken no mutex since it last woke another thread. So no waiter,
      however careful, could be sure to hear the signal. And the waiting thread is the first thread
      of its process, or another thread waits for its end.

    *The signal woke another thread.* The last signal came during the wait. It woke a thread that
    went straight back to wait on the same condition. No other thread has taken the mutex since, and
    no thread can signal any more. Two kinds of waiters share the condition, and the signal went to
    the wrong thread.
    """
    for fact in trace.facts("signal-missed"):
        yield fact.found(_message)


def _message(fact: Fact) -> str:
    signal, *others, wait = fact.steps
    if others:
        instead = others[0]
        return (
            f"{wait.thread} waits on {wait.object}{wait.at} for ever: when {signal.thread} "
            f"signalled it{signal.at}, that woke {instead.thread}, which went back to wait"
            f"{instead.at}; a broadcast would have woken both"
        )
    did = "broadcast" if signal.what == "broadcast" else "signalled"
    return (
        f"{wait.thread} waits on {wait.object}{wait.at} for ever: {signal.thread} {did} it"
        f"{signal.at} before that wait began, and nobody has since"
    )
