"""Traces that break a promise of the thread library, that keep it, and that leave it open."""

from __future__ import annotations

from typing import NamedTuple

from tests.trace.builder import Event

T0 = 10**12
S = 10**9
LOCK, OTHER, THING, POSIX_THREAD = 0x4040, 0x4080, 0x40C0, 0x7F0011
EBUSY, EAGAIN, EPERM, ETIMEDOUT, EOWNERDEAD, EINTR = 16, 11, 1, 110, 130, 4
SERIAL = -1
UNLOCK_IN = 28  # number of the routine in its domain
END = 30 * S


def ev(ts: int, name: str, thing: int = LOCK, *, variant: str = "", **fields: int) -> Event:
    return Event(T0 + ts, name, thing, 5, variant=variant, fields=fields)


def taken(ts: int, lock: int = LOCK) -> Event:
    return ev(ts, "MUTEX_TAKEN", lock)


def free(ts: int, lock: int = LOCK) -> Event:
    return ev(ts, "MUTEX_FREE", lock)


def mutex(ts: int = -100, *, kind: int = 0, robust: int = 0) -> Event:
    return ev(ts, "MUTEX_INIT", LOCK, kind=kind, robust=robust)


def cond_in(ts: int) -> list[Event]:
    """Begin a condition wait with the mutex."""
    return [ev(ts, "COND_WAIT_IN", THING, mutex=LOCK), free(ts + 1)]


def cond_out(ts: int, result: int = 0) -> list[Event]:
    return [taken(ts), ev(ts + 1, "COND_WAIT_OUT", THING, result=result)]


def barrier(ts: int, ts_out: int, result: int = 0) -> list[Event]:
    return [ev(ts, "BARRIER_WAIT_IN", THING), ev(ts_out, "BARRIER_WAIT_OUT", THING, result=result)]


def alive(at: int = END) -> list[Event]:
    """Return an event of another thread at the end: the process has gone on until then."""
    return [ev(at, "MUTEX_TAKEN", 0x9990), ev(at + 1, "MUTEX_FREE", 0x9990)]


Threads = dict[str, list[Event]]


class Case(NamedTuple):
    """A rule, a trace that breaks it, and a very similar trace that keeps it."""

    rule: str
    broken: Threads
    kept: Threads


COND = ev(-90, "COND_INIT", THING)
BARRIER = ev(-90, "BARRIER_INIT", THING, count=2)
SEM = ev(-90, "SEM_INIT", THING, value=1)
NONE_LEFT = ev(-90, "SEM_INIT", THING, value=0)
WRITERS = ev(-90, "RWLOCK_INIT", THING, preference=2)

# A mutex that another thread holds for as long as the first case of each pair says.
WAITER = [taken(0), *cond_in(10), taken(50), ev(51, "COND_WAIT_OUT", THING), free(100)]


def tried(kind: str, result: int, name: str = "TRYLOCK", *meanwhile: Event) -> list[Event]:
    return [
        ev(S, f"{kind}_{name}_IN", THING),
        *meanwhile,
        ev(S + 20, f"{kind}_{name}_OUT", THING, result=result),
    ]


def timed_wait(deadline: int, clock: int) -> list[Event]:
    return [
        ev(0, "MUTEX_CLOCKLOCK_IN", LOCK, clock=clock, deadline_ns=T0 + deadline),
        ev(2 * S, "MUTEX_CLOCKLOCK_OUT", LOCK, result=ETIMEDOUT),
    ]


def reader(second: int) -> list[Event]:
    """A queued writer, a reader that is refused because of it, and a second reader."""
    return [
        ev(0, "RWLOCK_FREE", OTHER),
        ev(300_000, "RWLOCK_FREE", OTHER),
        ev(second, "RWLOCK_TAKEN_READ", THING),
        ev(second + 10, "RWLOCK_FREE", THING),
    ]


WRITER = {
    "t1": [WRITERS, ev(0, "RWLOCK_TAKEN_READ", THING), ev(900_000, "RWLOCK_FREE", THING)],
    "t2": [
        ev(100_000, "RWLOCK_WAIT", THING, write=1),
        ev(910_000, "RWLOCK_TAKEN_WRITE", THING, variant="WAITED"),
        ev(950_000, "RWLOCK_FREE", THING),
    ],
    "t3": [
        ev(150_000, "RWLOCK_FREE", OTHER),
        ev(200_000, "RWLOCK_WAIT", THING, write=0),
        ev(960_000, "RWLOCK_TAKEN_READ", THING, variant="WAITED"),
        ev(970_000, "RWLOCK_FREE", THING),
    ],
}

BEGIN = ev(-50, "THREAD_BEGIN", POSIX_THREAD, serial=1)
JOIN = [ev(0, "THREAD_JOIN_IN", POSIX_THREAD), ev(50, "THREAD_JOIN_OUT", POSIX_THREAD)]
RUN = [ev(0, "ONCE_BEGIN", THING), ev(100_000, "ONCE_END", THING)]

CASES = {
    "mutex": Case(
        "mutex-exclusion",
        {"t1": [taken(0), free(100)], "t2": [taken(50), free(150)]},
        {"t1": [taken(0), free(100)], "t2": [taken(100), free(150)]},
    ),
    "mutex after waiting": Case(
        "mutex-exclusion",
        {
            "t1": [taken(0), free(100)],
            "t2": [ev(5, "MUTEX_WAIT"), ev(50, "MUTEX_TAKEN", variant="WAITED"), free(150)],
        },
        {
            "t1": [taken(0), free(100)],
            "t2": [ev(5, "MUTEX_WAIT"), ev(101, "MUTEX_TAKEN", variant="WAITED"), free(150)],
        },
    ),
    "recursive": Case(
        "mutex-recursion",
        {
            "t1": [mutex(kind=1), taken(0), taken(10), free(20), free(100)],
            "t2": [taken(50), free(60)],
        },
        {
            "t1": [mutex(kind=1), taken(0), taken(10), free(20), free(100)],
            "t2": [taken(150), free(160)],
        },
    ),
    "errorcheck, taken twice": Case(
        "mutex-recursion",
        {"t1": [mutex(kind=2), taken(0), taken(10), free(20), free(100)]},
        {"t1": [mutex(kind=1), taken(0), taken(10), free(20), free(100)]},
    ),
    "errorcheck, released by another": Case(
        "mutex-owner",
        {"t1": [mutex(kind=2), taken(0), free(100)], "t2": [free(50), taken(200), free(201)]},
        {
            "t1": [mutex(kind=2), taken(0), free(100)],
            "t2": [free(50), ev(51, "MUTEX_ERROR", routine=UNLOCK_IN, result=EPERM)],
        },
    ),
    "errorcheck, release accepted": Case(
        "mutex-owner",
        {"t1": [mutex(kind=2), ev(0, "MUTEX_UNLOCK_IN"), ev(1, "MUTEX_UNLOCK_OUT")]},
        {"t1": [mutex(kind=2), ev(0, "MUTEX_UNLOCK_IN"), ev(1, "MUTEX_UNLOCK_OUT", result=EPERM)]},
    ),
    "robust, release refused": Case(
        "mutex-owner",
        {
            "t1": [
                mutex(robust=1),
                taken(0),
                ev(50, "MUTEX_ERROR", routine=UNLOCK_IN, result=EPERM),
            ]
        },
        {
            "t1": [
                mutex(robust=1),
                taken(0),
                ev(9, "MUTEX_UNLOCK_IN"),
                free(10),
                ev(11, "MUTEX_UNLOCK_OUT"),
            ],
            "t2": [ev(50, "MUTEX_ERROR", routine=UNLOCK_IN, result=EPERM)],
        },
    ),
    "robust": Case(
        "mutex-robust",
        {
            "t1": [mutex(robust=1)],
            "t2": [BEGIN, taken(0), ev(100, "THREAD_END", POSIX_THREAD)],
            "t3": [ev(50, "MUTEX_TAKEN", variant="WAITED", result=EOWNERDEAD), free(60)],
        },
        {
            "t1": [mutex(robust=1)],
            "t2": [BEGIN, taken(0), ev(40, "THREAD_END", POSIX_THREAD)],
            "t3": [ev(50, "MUTEX_TAKEN", variant="WAITED", result=EOWNERDEAD), free(60)],
        },
    ),
    "not robust": Case(
        "mutex-robust",
        {"t1": [mutex(), ev(50, "MUTEX_TAKEN", variant="WAITED", result=EOWNERDEAD)]},
        {"t1": [mutex(robust=1), ev(50, "MUTEX_TAKEN", variant="WAITED", result=EOWNERDEAD)]},
    ),
    "rwlock, reader beside a writer": Case(
        "rwlock-exclusion",
        {
            "t1": [ev(0, "RWLOCK_TAKEN_WRITE"), ev(100, "RWLOCK_FREE")],
            "t2": [ev(50, "RWLOCK_TAKEN_READ"), ev(60, "RWLOCK_FREE")],
        },
        {
            "t1": [ev(0, "RWLOCK_TAKEN_READ"), ev(100, "RWLOCK_FREE")],
            "t2": [ev(50, "RWLOCK_TAKEN_READ"), ev(60, "RWLOCK_FREE")],
        },
    ),
    "rwlock, writer beside a reader": Case(
        "rwlock-exclusion",
        {
            "t1": [ev(0, "RWLOCK_TAKEN_READ"), ev(100, "RWLOCK_FREE")],
            "t2": [ev(50, "RWLOCK_TAKEN_WRITE"), ev(60, "RWLOCK_FREE")],
        },
        {
            "t1": [ev(0, "RWLOCK_TAKEN_READ"), ev(50, "RWLOCK_FREE")],
            "t2": [ev(50, "RWLOCK_TAKEN_WRITE"), ev(60, "RWLOCK_FREE")],
        },
    ),
    "rwlock, a reader goes first": Case(
        "rwlock-preference",
        {**WRITER, "t4": reader(400_000)},
        {**WRITER, "t4": reader(980_000)[:2]},
    ),
    "spin lock": Case(
        "spin-exclusion",
        {
            "t1": [ev(0, "SPIN_TAKEN"), ev(100, "SPIN_FREE")],
            "t2": [ev(50, "SPIN_TAKEN"), ev(60, "SPIN_FREE")],
        },
        {
            "t1": [ev(0, "SPIN_TAKEN"), ev(100, "SPIN_FREE")],
            "t2": [ev(150, "SPIN_TAKEN"), ev(160, "SPIN_FREE")],
        },
    ),
    "condition, mutex of another": Case(
        "cond-mutex",
        {"t1": WAITER, "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(80)]},
        {"t1": WAITER, "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(40)]},
    ),
    "condition, no mutex": Case(
        "cond-mutex",
        {"t1": [taken(0), *cond_in(10), ev(50, "COND_WAIT_OUT", THING)]},
        {"t1": [taken(0), *cond_in(10), *cond_out(50)]},
    ),
    "signal": Case(
        "cond-wakeup",
        {
            "t1": [COND, taken(0), *cond_in(10)],
            "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(40), *alive()],
        },
        {
            "t1": [COND, taken(0), *cond_in(10), *cond_out(50), free(60)],
            "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(40), *alive()],
        },
    ),
    "as many signals as waiters": Case(
        "cond-wakeup",
        {
            "t1": [COND, taken(0), *cond_in(10)],
            "t2": [taken(20), *cond_in(30), *cond_out(90), free(95)],
            "t3": [
                taken(40),
                ev(50, "COND_SIGNAL", THING),
                ev(60, "COND_SIGNAL", THING),
                free(70),
                *alive(),
            ],
        },
        {
            "t1": [COND, taken(0), *cond_in(10)],
            "t2": [taken(20), *cond_in(30), *cond_out(90), free(95)],
            "t3": [taken(40), ev(50, "COND_SIGNAL", THING), free(70), *alive()],
        },
    ),
    "broadcast": Case(
        "cond-wakeup",
        {
            "t1": [COND, taken(0), *cond_in(10)],
            "t2": [taken(20), *cond_in(30), *cond_out(90), free(95)],
            "t3": [taken(40), ev(50, "COND_BROADCAST", THING), free(60), *alive()],
        },
        {
            "t1": [COND, taken(0), *cond_in(10), *cond_out(70), free(75)],
            "t2": [taken(20), *cond_in(30), *cond_out(90), free(95)],
            "t3": [taken(40), ev(50, "COND_BROADCAST", THING), free(60), *alive()],
        },
    ),
    "barrier": Case(
        "barrier-early",
        {"t1": [BARRIER, *barrier(10, 20)], "t2": barrier(30, 40, SERIAL)},
        {"t1": [BARRIER, *barrier(10, 30)], "t2": barrier(30, 40, SERIAL)},
    ),
    "two serial threads": Case(
        "barrier-serial",
        {"t1": [BARRIER, *barrier(10, 40, SERIAL)], "t2": barrier(30, 50, SERIAL)},
        {"t1": [BARRIER, *barrier(10, 40, SERIAL)], "t2": barrier(30, 50)},
    ),
    "no serial thread": Case(
        "barrier-serial",
        {"t1": [BARRIER, *barrier(10, 40)], "t2": barrier(30, 50)},
        {"t1": [BARRIER, *barrier(10, 40)], "t2": barrier(30, 50, SERIAL)},
    ),
    "semaphore": Case(
        "sem-value",
        {"t1": [SEM, ev(0, "SEM_TAKEN", THING)], "t2": [ev(10, "SEM_TAKEN", THING)]},
        {
            "t1": [SEM, ev(0, "SEM_TAKEN", THING), ev(10, "SEM_POST", THING)],
            "t2": [ev(10, "SEM_TAKEN", THING)],
        },
    ),
    "once, two at a time": Case(
        "once-twice",
        {"t1": RUN, "t2": [ev(50, "ONCE_BEGIN", THING)]},
        {"t1": RUN, "t2": [ev(50, "ONCE_WAIT", THING), ev(110_000, "ONCE_WAIT_END", THING)]},
    ),
    "once, one after the other": Case(
        "once-twice",
        {"t1": RUN, "t2": [ev(50, "ONCE_IN", THING), ev(150_000, "ONCE_BEGIN", THING)]},
        {
            "t1": [ev(0, "ONCE_BEGIN", THING), ev(100_000, "ONCE_END", THING, cancelled=1)],
            "t2": [ev(50, "ONCE_IN", THING), ev(150_000, "ONCE_BEGIN", THING)],
        },
    ),
    "once, not yet run": Case(
        "once-early",
        {"t1": RUN, "t2": [ev(50, "ONCE_WAIT", THING), ev(8_000, "ONCE_WAIT_END", THING)]},
        {"t1": RUN, "t2": [ev(50, "ONCE_WAIT", THING), ev(99_000, "ONCE_WAIT_END", THING)]},
    ),
    "once, call": Case(
        "once-early",
        {"t1": RUN, "t2": [ev(50, "ONCE_IN", THING), ev(8_000, "ONCE_OUT", THING)]},
        {"t1": RUN, "t2": [ev(50, "ONCE_IN", THING), ev(190_000, "ONCE_OUT", THING)]},
    ),
    "join": Case(
        "join-end",
        {"t1": JOIN, "t2": [BEGIN, ev(100, "THREAD_END", POSIX_THREAD)]},
        {"t1": JOIN, "t2": [BEGIN, ev(40, "THREAD_END", POSIX_THREAD)]},
    ),
    "creation": Case(
        "create-begin",
        {
            "t1": [
                ev(0, "THREAD_CREATE_IN", 0),
                ev(20, "NEW_THREAD_CREATED", POSIX_THREAD, serial=1),
            ],
            "t2": [BEGIN],
        },
        {
            "t1": [
                ev(-60, "THREAD_CREATE_IN", 0),
                ev(20, "NEW_THREAD_CREATED", POSIX_THREAD, serial=1),
            ],
            "t2": [BEGIN],
        },
    ),
    "try a mutex": Case(
        "try-busy",
        {"t1": [ev(0, "MUTEX_INIT", THING), *tried("MUTEX", EBUSY)]},
        {"t1": [ev(0, "MUTEX_INIT", THING), *tried("MUTEX", 0)]},
    ),
    "try to write": Case(
        "try-busy",
        {"t1": [ev(0, "RWLOCK_INIT", THING), *tried("RWLOCK", EBUSY, "TRYWRLOCK")]},
        {"t1": [ev(0, "RWLOCK_INIT", THING), *tried("RWLOCK", 0, "TRYWRLOCK")]},
    ),
    "try to read": Case(
        "try-busy",
        {"t1": [ev(0, "RWLOCK_INIT", THING), *tried("RWLOCK", EBUSY, "TRYRDLOCK")]},
        {"t1": [ev(0, "RWLOCK_INIT", THING), *tried("RWLOCK", 0, "TRYRDLOCK")]},
    ),
    "try a spin lock": Case(
        "try-busy",
        {"t1": [ev(0, "SPIN_INIT", THING), *tried("SPIN", EBUSY)]},
        {"t1": [ev(0, "SPIN_INIT", THING), *tried("SPIN", 0)]},
    ),
    "try a semaphore": Case(
        "try-busy",
        {"t1": [SEM, *tried("SEM", EAGAIN, "TRYWAIT")]},
        {"t1": [SEM, *tried("SEM", 0, "TRYWAIT", ev(S + 10, "SEM_TAKEN", THING))]},
    ),
    "time limit": Case("timeout-early", {"t1": timed_wait(3 * S, 1)}, {"t1": timed_wait(2 * S, 1)}),
    "time limit of a condition": Case(
        "timeout-early",
        {
            "t1": [
                ev(-90, "COND_INIT", THING, clock=1),
                taken(0),
                ev(1, "COND_TIMEDWAIT_IN", THING, mutex=LOCK, deadline_ns=T0 + 3 * S),
                free(2),
                taken(S),
                ev(S + 1, "COND_TIMEDWAIT_OUT", THING, result=ETIMEDOUT),
            ]
        },
        {
            "t1": [
                ev(-90, "COND_INIT", THING, clock=1),
                taken(0),
                ev(1, "COND_TIMEDWAIT_IN", THING, mutex=LOCK, deadline_ns=T0 + 3 * S),
                free(2),
                taken(3 * S),
                ev(3 * S + 1, "COND_TIMEDWAIT_OUT", THING, result=ETIMEDOUT),
            ]
        },
    ),
    "interrupted": Case(
        "result",
        {"t1": [ev(0, "MUTEX_LOCK_IN"), ev(1, "MUTEX_LOCK_OUT", result=EINTR)]},
        {"t1": [ev(0, "SEM_WAIT_IN"), ev(1, "SEM_WAIT_OUT", result=EINTR)]},
    ),
    "no error number": Case(
        "result",
        {"t1": [ev(1, "COND_SIGNAL_OUT", result=-5)]},
        {"t1": [ev(1, "COND_SIGNAL_OUT", result=22)]},
    ),
}
WARNINGS = {
    "mutex": Case(
        "not-woken",
        {"t1": [taken(0), free(100)], "t2": [ev(50, "MUTEX_WAIT")], "t3": alive()},
        {"t1": [taken(0), free(END)], "t2": [ev(50, "MUTEX_WAIT")], "t3": alive()},
    ),
    "rwlock": Case(
        "not-woken",
        {
            "t1": [WRITERS, ev(0, "RWLOCK_TAKEN_WRITE", THING), ev(100, "RWLOCK_FREE", THING)],
            "t2": [ev(50, "RWLOCK_WAIT", THING)],
            "t3": alive(),
        },
        {
            "t1": [WRITERS, ev(0, "RWLOCK_TAKEN_WRITE", THING)],
            "t2": [ev(50, "RWLOCK_WAIT", THING)],
            "t3": alive(),
        },
    ),
    "semaphore": Case(
        "not-woken",
        {
            "t1": [ev(50, "SEM_WAIT", THING)],
            "t2": [NONE_LEFT, ev(60, "SEM_POST", THING)],
            "t3": alive(),
        },
        {"t1": [ev(50, "SEM_WAIT", THING)], "t2": [NONE_LEFT], "t3": alive()},
    ),
    "barrier": Case(
        "not-woken",
        {"t1": [BARRIER, *barrier(10, 40, SERIAL)], "t2": barrier(30, 50)[:1], "t3": alive()},
        {
            "t1": [BARRIER, *barrier(10, 40, SERIAL)],
            "t2": [*barrier(30, 50), *barrier(60, 70)[:1]],
            "t3": alive(),
        },
    ),
    "join": Case(
        "not-woken",
        {"t1": JOIN[:1], "t2": [BEGIN, ev(100, "THREAD_END", POSIX_THREAD)], "t3": alive()},
        {"t1": JOIN[:1], "t2": [BEGIN], "t3": alive()},
    ),
    "once": Case(
        "not-woken",
        {"t1": RUN, "t2": [ev(50, "ONCE_WAIT", THING)], "t3": alive()},
        {"t1": RUN[:1], "t2": [ev(50, "ONCE_WAIT", THING)], "t3": alive()},
    ),
    "condition nobody initialized": Case(
        "cond-wakeup",
        {
            "t1": [taken(0), *cond_in(10)],
            "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(40), *alive()],
        },
        {
            "t1": [taken(0), *cond_in(10)],
            "t2": [taken(20), free(40), ev(50, "COND_SIGNAL", OTHER), *alive()],
        },
    ),
    "time of day": Case(
        "timeout-early", {"t1": timed_wait(5 * S, 0)}, {"t1": timed_wait(2 * S, 0)}
    ),
    "unusual error": Case(
        "result",
        {"t1": [ev(1, "COND_SIGNAL_OUT", result=12)]},
        {"t1": [ev(1, "COND_SIGNAL_OUT", result=0)]},
    ),
}


A_LOCK = CASES["mutex"].broken
SILENT: dict[str, Threads] = {
    "a lock in reused memory": {
        "t1": [taken(0)],
        "t2": [taken(50), free(60)],
        "t3": [taken(70), free(80)],
    },
    "memory reused by the holder of the lock": {
        "t1": [taken(0), taken(100), free(110)],
        "t2": [taken(50), free(60)],
    },
    "initialized again": {
        "t1": [taken(0), free(100)],
        "t2": [mutex(40), taken(50), free(60)],
    },
    "destroyed": {
        "t1": [taken(0), free(100)],
        "t2": [ev(40, "MUTEX_DESTROY"), taken(50), free(60)],
    },
    "an unnoticed release by another thread, as the type allows": {
        "t1": [taken(0), free(100)],
        "t2": [free(40), taken(50), free(60)],
        "t3": [taken(55), free(90)],
    },
    "held since before the trace": {"t1": [free(10)], "t2": [taken(5), free(20)]},
    "a level that changed": {
        "t1": [taken(0), free(100)],
        "t2": [ev(20, "LEVEL_CHANGED", 0), taken(50), free(60)],
    },
    "a level that changed soon afterwards": {**A_LOCK, "t3": [ev(S // 2, "LEVEL_CHANGED", 0)]},
    "lost events": {**A_LOCK, "t3": [ev(-10, "EVENTS_LOST", 0, count=1)]},
    "a semaphore that processes share": {
        "t1": [ev(-9, "SEM_INIT", THING, shared=1), ev(0, "SEM_TAKEN", THING)],
    },
    "a semaphore from before the trace": {"t1": [ev(0, "SEM_TAKEN", THING)]},
    "a named semaphore": {"t1": [ev(-9, "SEM_OPEN", THING, value=0), ev(0, "SEM_TAKEN", THING)]},
    "a semaphore that a child may have": {
        "t1": [NONE_LEFT, ev(-5, "PROCESS_FORK", 0, child=7), ev(0, "SEM_TAKEN", THING)],
    },
    "a unit of an earlier semaphore at the address": {
        "t1": [
            ev(-99, "SEM_INIT", THING),
            ev(-98, "SEM_POST", THING),
            ev(-97, "SEM_DESTROY", THING),
            NONE_LEFT,
        ],
        "t2": [ev(0, "SEM_TAKEN", THING)],
    },
    "a barrier destroyed after all threads left": {
        "t1": [
            BARRIER,
            *barrier(10, 40, SERIAL),
            ev(45, "BARRIER_DESTROY", THING),
            ev(46, "BARRIER_INIT", THING, count=3),
        ],
        "t2": barrier(30, 50),
    },
    "a once control that was reset": {"t1": [*RUN, ev(200_000, "ONCE_BEGIN", THING)]},
    "a signal without the mutex": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [ev(30, "COND_SIGNAL", THING), *alive()],
    },
    "a signal before the wait": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [ev(-80, "MUTEX_TAKEN"), ev(-70, "COND_SIGNAL", THING), free(-60), *alive()],
    },
    "a signal shortly before the end": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(40), *alive(S)],
    },
    "a mutex held to the end": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [taken(20), ev(30, "COND_SIGNAL", THING), *alive()],
    },
    "a cancelled waiter": {
        "t1": [COND, taken(0), *cond_in(10), *cond_out(50, 125)],
        "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(40), *alive()],
    },
    "a signal that another waiter may have used": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [taken(20), ev(30, "COND_SIGNAL", OTHER), *cond_in(35), *cond_out(60), free(70)],
        "t3": [taken(40), ev(50, "COND_SIGNAL", THING), free(55), *alive()],
    },
    "a try during a call of another thread": {
        "t1": [ev(0, "MUTEX_INIT", THING), *tried("MUTEX", EBUSY)],
        "t2": [ev(S - 50_000, "MUTEX_LOCK_IN", THING)],
    },
    "a try just after another thread released the lock": {
        "t1": [ev(0, "MUTEX_INIT", THING), *tried("MUTEX", EBUSY)],
        "t2": [taken(S - 2000, THING), free(S - 1000, THING)],
    },
    "a join of a thread without a beginning": {
        "t1": JOIN,
        "t2": [ev(100, "THREAD_END", POSIX_THREAD)],
    },
    "a reused thread id": {
        "t1": JOIN,
        "t2": [BEGIN, ev(100, "THREAD_BEGIN", 0x7F0022, serial=2), ev(200, "THREAD_END", 0x7F0022)],
    },
    "an orphaned mutex that nobody made consistent": {
        "t1": [
            mutex(robust=1),
            ev(5, "MUTEX_TAKEN", variant="WAITED", result=EOWNERDEAD),
            ev(10, "MUTEX_UNLOCK_IN"),
            ev(11, "MUTEX_UNLOCK_OUT"),
            ev(12, "MUTEX_ERROR", routine=UNLOCK_IN, result=EPERM),
        ],
    },
    "an orphaned mutex taken back by a condition wait": {
        "t1": [
            mutex(robust=1),
            taken(0),
            *cond_in(10),
            *cond_out(50, EOWNERDEAD),
            ev(60, "MUTEX_UNLOCK_IN"),
            ev(61, "MUTEX_UNLOCK_OUT"),
        ],
    },
    "a reader before the writer was queued": {**WRITER, "t4": reader(400_000)[2:]},
}
