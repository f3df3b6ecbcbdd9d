"""Waits for a signal that has gone."""

from __future__ import annotations

from collections.abc import Iterator

from nptltrace.findings import Fact, Found, Trace, finding


@finding("lost-wakeup", severity="error")
def lost_wakeup(trace: Trace) -> Iterator[Found]:
    """A thread waits on a condition for a signal that came before, or woke another thread.

    A thread waits on a condition, without a time limit, to the end of the trace. The condition was
    signalled before that wait began, when no thread waited for it (or broadcast, when this thread
    did not), and not afterwards. And between the signal and the wait no thread took the mutex to
    look at what it guards: the hold that the wait gave up was the first. A worker that took what it
    was signalled for and now waits for more is thus not reported. One of two things must come on
    top:

    - no thread can signal any more: every thread of the process has ended or is blocked, without a
      time limit, by others of them. (A thread that waits for a semaphore is not blocked in this
      sense if a signal handler may post it: see `stuck`.)
    - or the thread that signalled had not taken any mutex since it last woke another, so that no
      waiter, however careful, could be sure to hear it; and the thread that waits is the first one
      of its process, or another waits for its end.

    Or the last signal came while the thread was waiting, and woke another one, which went straight
    back to wait on the same condition; no other thread has taken the mutex since, and no thread can
    signal any more. Two kinds of waiters share a condition, and the signal went to the wrong one.
    """
    for fact in trace.facts("signal-missed"):
        yield fact.found(_message(fact))


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
