"""What `ptt verify` says of a library that keeps its promises, and of one that does not."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from nptltrace.analysis import _verifier
from nptltrace.analysis.model import Window
from nptltrace.analysis.verify import verify
from nptltrace.catalog import BY_ID
from nptltrace.trace.alias import read_aliases
from nptltrace.trace.copying import Part, write_trace
from nptltrace.trace.source import Source
from nptltrace.trace.symbols import Symbols
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nptltrace.analysis.verify import Verdict
    from tests.support import Ptt

T0 = 10**12
S = 10**9
LOCK, OTHER, THING, POSIX_THREAD = 0x4040, 0x4080, 0x40C0, 0x7F0011
EBUSY, EAGAIN, EPERM, ETIMEDOUT, EOWNERDEAD, EINTR = 16, 11, 1, 110, 130, 4
SERIAL = -1
UNLOCK_IN = 28  # number of the routine in its domain
END = 30 * S


def ev(ts: int, name: str, thing: int = LOCK, variant: str = "", **fields: int) -> Event:
    return Event(T0 + ts, name, thing, 5, variant=variant, fields=fields)


def taken(ts: int, lock: int = LOCK) -> Event:
    return ev(ts, "MUTEX_TAKEN", lock)


def free(ts: int, lock: int = LOCK) -> Event:
    return ev(ts, "MUTEX_FREE", lock)


def mutex(ts: int = -100, **fields: int) -> Event:
    return ev(ts, "MUTEX_INIT", LOCK, **fields)


def cond_in(ts: int) -> list[Event]:
    """Begin a condition wait with the mutex."""
    return [ev(ts, "COND_WAIT_IN", THING, mutex=LOCK), free(ts + 1)]


def cond_out(ts: int, result: int = 0) -> list[Event]:
    return [taken(ts), ev(ts + 1, "COND_WAIT_OUT", THING, result=result)]


def barrier(ts: int, ts_out: int, result: int = 0) -> list[Event]:
    return [ev(ts, "BARRIER_WAIT_IN", THING), ev(ts_out, "BARRIER_WAIT_OUT", THING, result=result)]


def alive(at: int = END) -> list[Event]:
    """What another thread does at the end: the process has gone on until then."""
    return [ev(at, "MUTEX_TAKEN", 0x9990), ev(at + 1, "MUTEX_FREE", 0x9990)]


Threads = dict[str, list[Event]]


class Case(NamedTuple):
    """A rule, a trace that breaks it and one, as alike as can be, that keeps it."""

    rule: str
    broken: Threads
    kept: Threads


COND = ev(-90, "COND_INIT", THING)
BARRIER = ev(-90, "BARRIER_INIT", THING, count=2)
SEM = ev(-90, "SEM_INIT", THING, value=1)
NONE_LEFT = ev(-90, "SEM_INIT", THING, value=0)
WRITERS = ev(-90, "RWLOCK_INIT", THING, preference=2)

# A mutex that another thread holds as long as the first case of each pair says.
WAITER = [taken(0), *cond_in(10), taken(50), ev(51, "COND_WAIT_OUT", THING), free(100)]


def tried(kind: str, result: int, name: str = "TRYLOCK") -> list[Event]:
    return [
        ev(S, f"{kind}_{name}_IN", THING),
        ev(S + 20, f"{kind}_{name}_OUT", THING, result=result),
    ]


def timed_wait(deadline: int, clock: int) -> list[Event]:
    return [
        ev(0, "MUTEX_CLOCKLOCK_IN", LOCK, clock=clock, deadline_ns=T0 + deadline),
        ev(2 * S, "MUTEX_CLOCKLOCK_OUT", LOCK, result=ETIMEDOUT),
    ]


def reader(second: int) -> list[Event]:
    """A queued writer, a reader that is turned away because of it, and one that comes then."""
    return [
        ev(0, "RWLOCK_FREE", OTHER), ev(300_000, "RWLOCK_FREE", OTHER),
        ev(second, "RWLOCK_TAKEN_READ", THING), ev(second + 10, "RWLOCK_FREE", THING),
    ]  # fmt: skip


WRITER = {
    "t1": [WRITERS, ev(0, "RWLOCK_TAKEN_READ", THING), ev(900_000, "RWLOCK_FREE", THING)],
    "t2": [
        ev(100_000, "RWLOCK_WAIT", THING, write=1),
        ev(910_000, "RWLOCK_TAKEN_WRITE", THING, variant="WAITED"),
        ev(950_000, "RWLOCK_FREE", THING),
    ],
    "t3": [
        ev(150_000, "RWLOCK_FREE", OTHER), ev(200_000, "RWLOCK_WAIT", THING, write=0),
        ev(960_000, "RWLOCK_TAKEN_READ", THING, variant="WAITED"),
        ev(970_000, "RWLOCK_FREE", THING),
    ],
}  # fmt: skip

BEGIN = ev(-50, "THREAD_BEGIN", POSIX_THREAD, serial=1)
JOIN = [ev(0, "THREAD_JOIN_IN", POSIX_THREAD), ev(50, "THREAD_JOIN_OUT", POSIX_THREAD)]
RUN = [ev(0, "ONCE_BEGIN", THING), ev(100, "ONCE_END", THING)]

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
        {"t1": [mutex(kind=1), taken(0), taken(10), free(20), free(100)], "t2": [taken(50), free(60)]},
        {"t1": [mutex(kind=1), taken(0), taken(10), free(20), free(100)], "t2": [taken(150), free(160)]},
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
                mutex(robust=1), taken(0),
                ev(50, "MUTEX_ERROR", routine=UNLOCK_IN, result=EPERM),
            ]
        },
        {
            "t1": [mutex(robust=1), taken(0), ev(9, "MUTEX_UNLOCK_IN"), free(10), ev(11, "MUTEX_UNLOCK_OUT")],
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
            "t3": [taken(40), ev(50, "COND_SIGNAL", THING), ev(60, "COND_SIGNAL", THING), free(70), *alive()],
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
        {"t1": RUN, "t2": [ev(50, "ONCE_WAIT", THING), ev(110, "ONCE_WAIT_END", THING)]},
    ),
    "once, one after the other": Case(
        "once-twice",
        {"t1": RUN, "t2": [ev(50, "ONCE_IN", THING), ev(150, "ONCE_BEGIN", THING)]},
        {
            "t1": [ev(0, "ONCE_BEGIN", THING), ev(100, "ONCE_END", THING, cancelled=1)],
            "t2": [ev(50, "ONCE_IN", THING), ev(150, "ONCE_BEGIN", THING)],
        },
    ),
    "once, not yet run": Case(
        "once-early",
        {"t1": RUN, "t2": [ev(50, "ONCE_WAIT", THING), ev(90, "ONCE_WAIT_END", THING)]},
        {"t1": RUN, "t2": [ev(50, "ONCE_WAIT", THING), ev(100, "ONCE_WAIT_END", THING)]},
    ),
    "once, call": Case(
        "once-early",
        {"t1": RUN, "t2": [ev(50, "ONCE_IN", THING), ev(90, "ONCE_OUT", THING)]},
        {"t1": RUN, "t2": [ev(50, "ONCE_IN", THING), ev(190, "ONCE_OUT", THING)]},
    ),
    "join": Case(
        "join-end",
        {"t1": JOIN, "t2": [BEGIN, ev(100, "THREAD_END", POSIX_THREAD)]},
        {"t1": JOIN, "t2": [BEGIN, ev(40, "THREAD_END", POSIX_THREAD)]},
    ),
    "creation": Case(
        "create-begin",
        {
            "t1": [ev(0, "THREAD_CREATE_IN", 0), ev(20, "NEW_THREAD_CREATED", POSIX_THREAD, serial=1)],
            "t2": [BEGIN],
        },
        {
            "t1": [ev(-60, "THREAD_CREATE_IN", 0), ev(20, "NEW_THREAD_CREATED", POSIX_THREAD, serial=1)],
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
        {"t1": [SEM, ev(S + 10, "SEM_TAKEN", THING), *tried("SEM", 0, "TRYWAIT")][::1]},
    ),
    "time limit": Case(
        "timeout-early", {"t1": timed_wait(3 * S, 1)}, {"t1": timed_wait(2 * S, 1)}
    ),
    "time limit of a condition": Case(
        "timeout-early",
        {
            "t1": [
                ev(-90, "COND_INIT", THING, clock=1), taken(0),
                ev(1, "COND_TIMEDWAIT_IN", THING, mutex=LOCK, deadline_ns=T0 + 3 * S), free(2),
                taken(S), ev(S + 1, "COND_TIMEDWAIT_OUT", THING, result=ETIMEDOUT),
            ]
        },
        {
            "t1": [
                ev(-90, "COND_INIT", THING, clock=1), taken(0),
                ev(1, "COND_TIMEDWAIT_IN", THING, mutex=LOCK, deadline_ns=T0 + 3 * S), free(2),
                taken(3 * S), ev(3 * S + 1, "COND_TIMEDWAIT_OUT", THING, result=ETIMEDOUT),
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
}  # fmt: skip
# Their order within a thread matters to the builder.
CASES["try a semaphore"] = CASES["try a semaphore"]._replace(
    kept={"t1": [SEM, tried("SEM", 0, "TRYWAIT")[0], ev(S + 10, "SEM_TAKEN", THING), tried("SEM", 0, "TRYWAIT")[1]]}
)

WARNINGS = {
    "mutex": Case(
        "not-woken",
        {"t1": [taken(0), free(100)], "t2": [ev(50, "MUTEX_WAIT"), *[]], "t3": alive()},
        {"t1": [taken(0), free(END)], "t2": [ev(50, "MUTEX_WAIT")], "t3": alive()},
    ),
    "rwlock": Case(
        "not-woken",
        {
            "t1": [WRITERS, ev(0, "RWLOCK_TAKEN_WRITE", THING), ev(100, "RWLOCK_FREE", THING)],
            "t2": [ev(50, "RWLOCK_WAIT", THING)], "t3": alive(),
        },
        {
            "t1": [WRITERS, ev(0, "RWLOCK_TAKEN_WRITE", THING)],
            "t2": [ev(50, "RWLOCK_WAIT", THING)], "t3": alive(),
        },
    ),
    "semaphore": Case(
        "not-woken",
        {"t1": [ev(50, "SEM_WAIT", THING)], "t2": [NONE_LEFT, ev(60, "SEM_POST", THING)], "t3": alive()},
        {"t1": [ev(50, "SEM_WAIT", THING)], "t2": [NONE_LEFT], "t3": alive()},
    ),
    "barrier": Case(
        "not-woken",
        {"t1": [BARRIER, *barrier(10, 40, SERIAL)], "t2": barrier(30, 50)[:1], "t3": alive()},
        {"t1": [BARRIER, *barrier(10, 40, SERIAL)], "t2": [*barrier(30, 50), *barrier(60, 70)[:1]], "t3": alive()},
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
    "time of day": Case("timeout-early", {"t1": timed_wait(5 * S, 0)}, {"t1": timed_wait(2 * S, 0)}),
    "unusual error": Case(
        "result",
        {"t1": [ev(1, "COND_SIGNAL_OUT", result=12)]},
        {"t1": [ev(1, "COND_SIGNAL_OUT", result=0)]},
    ),
}  # fmt: skip


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Write a trace of threads, given as lists of events by tid."""
    made_so_far: list[Path] = []

    def make(threads: Threads, *, session: dict[str, Any] | None = None) -> Path:
        path = tmp_path / f"made-{len(made_so_far)}.ptt"
        made_so_far.append(path)
        made = Builder(path)
        for name, events in threads.items():
            made.thread(int(name[1:]), events)
        made.session |= {"level": "3", "clock": {"name": "monotonic"}}
        made.session |= session or {}
        made.processes = [
            {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
            {"sites": {"process": 0, "sites": {"5": "0x401005"}}},
        ]
        return made.write()

    return make


def verdict_of(trace: Path, **more: Any) -> Verdict:
    source = Source([trace])
    return verify(source, Symbols(source, read_aliases([]), []), **more)


def unix_offset(threads: Threads) -> Threads:
    """Give deadlines of the time of day the day that the builder writes."""
    from tests.trace.builder import BOOT

    for event in (event for events in threads.values() for event in events):
        if event.fields.get("clock") == 0 and "deadline_ns" in event.fields:
            event.fields["deadline_ns"] = event.fields["deadline_ns"] % BOOT + BOOT
    return threads


# ---- every rule ----


@pytest.mark.parametrize("name", CASES)
def test_broken(name: str, build: Callable[..., Path]) -> None:
    case = CASES[name]
    verdict = verdict_of(build(case.broken))
    assert [(one.rule, one.severity) for one in verdict.violations] == [(case.rule, "error")]
    assert verdict.checked[case.rule] > 0
    (one,) = verdict.violations
    assert one.count == 1
    assert one.pid == 100
    assert [event.ts_ns for event in one.events] == sorted(event.ts_ns for event in one.events)
    assert one.ts_ns == one.events[-1].ts_ns
    assert all(event.text for event in one.events)


@pytest.mark.parametrize("name", CASES)
def test_kept(name: str, build: Callable[..., Path]) -> None:
    verdict = verdict_of(build(CASES[name].kept))
    assert verdict.violations == []
    assert sum(verdict.checked.values()) > 0


@pytest.mark.parametrize("name", WARNINGS)
def test_warning(name: str, build: Callable[..., Path]) -> None:
    case = WARNINGS[name]
    verdict = verdict_of(build(unix_offset(case.broken)))
    assert [(one.rule, one.severity) for one in verdict.violations] == [(case.rule, "warning")]
    assert verdict_of(build(unix_offset(case.kept))).violations == []


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in [*CASES.values(), *WARNINGS.values()]} == set(_verifier.rules())


def test_every_rule_and_reason_is_documented() -> None:
    from tests.support import ROOT

    text = (ROOT / "docs" / "explanation" / "verify.md").read_text(encoding="utf-8")
    assert [name for name in _verifier.rules() + _verifier.skips() if f"`{name}`" not in text] == []


# ---- when nothing is said ----

A_LOCK = CASES["mutex"].broken
SILENT: dict[str, Threads] = {
    "a lock whose memory was used anew": {
        "t1": [taken(0)], "t2": [taken(50), free(60)], "t3": [taken(70), free(80)],
    },
    "used anew by who held it": {
        "t1": [taken(0), taken(100), free(110)], "t2": [taken(50), free(60)],
    },
    "initialized anew": {
        "t1": [taken(0), free(100)], "t2": [mutex(40), taken(50), free(60)],
    },
    "destroyed": {
        "t1": [taken(0), free(100)], "t2": [ev(40, "MUTEX_DESTROY"), taken(50), free(60)],
    },
    "released by another thread, which the type allows to go unnoticed": {
        "t1": [taken(0), free(100)], "t2": [free(40), taken(50), free(60)], "t3": [taken(55), free(90)],
    },
    "held since before the trace": {"t1": [free(10)], "t2": [taken(5), free(20)]},
    "a level that changed": {
        "t1": [taken(0), free(100)], "t2": [ev(20, "LEVEL_CHANGED", 0), taken(50), free(60)],
    },
    "a level that changed soon afterwards": {**A_LOCK, "t3": [ev(S // 2, "LEVEL_CHANGED", 0)]},
    "lost events": {**A_LOCK, "t3": [ev(-10, "EVENTS_LOST", 0, count=1)]},
    "a semaphore that processes share": {
        "t1": [ev(-9, "SEM_INIT", THING, shared=1), ev(0, "SEM_TAKEN", THING)],
    },
    "a semaphore of before the trace": {"t1": [ev(0, "SEM_TAKEN", THING)]},
    "a named semaphore": {"t1": [ev(-9, "SEM_OPEN", THING, value=0), ev(0, "SEM_TAKEN", THING)]},
    "a semaphore that a child may have": {
        "t1": [NONE_LEFT, ev(-5, "PROCESS_FORK", 0, child=7), ev(0, "SEM_TAKEN", THING)],
    },
    "a unit of the semaphore that was here before": {
        "t1": [
            ev(-99, "SEM_INIT", THING), ev(-98, "SEM_POST", THING), ev(-97, "SEM_DESTROY", THING),
            NONE_LEFT,
        ],
        "t2": [ev(0, "SEM_TAKEN", THING)],
    },
    "a barrier that was destroyed when all had left it": {
        "t1": [BARRIER, *barrier(10, 40, SERIAL), ev(45, "BARRIER_DESTROY", THING),
               ev(46, "BARRIER_INIT", THING, count=3)],
        "t2": barrier(30, 50),
    },
    "a once control that was set anew": {"t1": [*RUN, ev(200, "ONCE_BEGIN", THING)]},
    "a signal of one who cannot know": {
        "t1": [COND, taken(0), *cond_in(10)], "t2": [ev(30, "COND_SIGNAL", THING), *alive()],
    },
    "a signal before the wait": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [ev(-80, "MUTEX_TAKEN"), ev(-70, "COND_SIGNAL", THING), free(-60), *alive()],
    },
    "a signal shortly before the end": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(40), *alive(S)],
    },
    "a mutex that is held to the end": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [taken(20), ev(30, "COND_SIGNAL", THING), *alive()],
    },
    "a waiter that is cancelled": {
        "t1": [COND, taken(0), *cond_in(10), *cond_out(50, 125)],
        "t2": [taken(20), ev(30, "COND_SIGNAL", THING), free(40), *alive()],
    },
    "a signal that another waiter may have had": {
        "t1": [COND, taken(0), *cond_in(10)],
        "t2": [taken(20), ev(30, "COND_SIGNAL", OTHER), *cond_in(35), *cond_out(60), free(70)],
        "t3": [taken(40), ev(50, "COND_SIGNAL", THING), free(55), *alive()],
    },
    "a try while another thread is at it": {
        "t1": [ev(0, "MUTEX_INIT", THING), *tried("MUTEX", EBUSY)],
        "t2": [ev(S - 50_000, "MUTEX_LOCK_IN", THING)],
    },
    "a try just after another thread had it": {
        "t1": [ev(0, "MUTEX_INIT", THING), *tried("MUTEX", EBUSY)],
        "t2": [taken(S - 2000, THING), free(S - 1000, THING)],
    },
    "a join of a thread without a beginning": {
        "t1": JOIN, "t2": [ev(100, "THREAD_END", POSIX_THREAD)],
    },
    "a thread id that is used again": {
        "t1": JOIN,
        "t2": [BEGIN, ev(100, "THREAD_BEGIN", 0x7F0022, serial=2), ev(200, "THREAD_END", 0x7F0022)],
    },
    "an orphaned mutex that nobody mended": {
        "t1": [
            mutex(robust=1), ev(5, "MUTEX_TAKEN", variant="WAITED", result=EOWNERDEAD),
            ev(10, "MUTEX_UNLOCK_IN"), ev(11, "MUTEX_UNLOCK_OUT"),
            ev(12, "MUTEX_ERROR", routine=UNLOCK_IN, result=EPERM),
        ],
    },
    "a reader that came before the writer was queued": {**WRITER, "t4": reader(400_000)[2:]},
}  # fmt: skip


@pytest.mark.parametrize("name", SILENT)
def test_silent(name: str, build: Callable[..., Path]) -> None:
    assert verdict_of(build(SILENT[name])).violations == []


@pytest.mark.parametrize(
    "session",
    [
        {"lost": {"buffers_full": 3}},
        {"state": "running"},
        {"state": "recovered"},
        {"overwritten_bytes": 4096},
        {"removed_events": 10},
        {"uncovered": [{"module": "/lib/x.so", "why": "-Bsymbolic"}]},
        {"level_changed": True},
        {"part": "thread"},
    ],
    ids=lambda session: next(iter(session)),
)
def test_gaps_leave_single_calls(session: dict[str, Any], build: Callable[..., Path]) -> None:
    threads = {**A_LOCK, "t3": CASES["interrupted"].broken["t1"]}
    verdict = verdict_of(build(threads, session=session))
    assert [one.rule for one in verdict.violations] == ["result"]
    assert len(verdict.gaps) == 1
    assert verdict.skipped["incomplete"] == 4


def test_damage_is_a_gap(build: Callable[..., Path]) -> None:
    trace = build(A_LOCK)
    file = trace / "stream-00000"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(bytes(data))
    verdict = verdict_of(trace)
    assert verdict.violations == []
    assert ["damaged" in gap for gap in verdict.gaps] == [True]


def test_a_part_of_the_time_is_whole(build: Callable[..., Path], tmp_path: Path) -> None:
    trace = build(A_LOCK)
    assert len(verdict_of(trace, window=Window(0, 101)).violations) == 1
    assert verdict_of(trace, window=Window(0, 60)).violations == []
    assert verdict_of(trace, window=Window(20, None)).violations == []


def test_some_of_the_threads_are_not(build: Callable[..., Path], tmp_path: Path) -> None:
    trace = build(
        {"t1": [NONE_LEFT, ev(10, "SEM_TAKEN", THING)], "t2": [ev(5, "SEM_POST", THING)]}
    )
    assert verdict_of(trace).violations == []
    part = tmp_path / "part.ptt"
    write_trace(Source([trace]), part, Part(thread=0))
    verdict = verdict_of(part)
    assert verdict.violations == []
    assert len(verdict.gaps) == 1


def test_a_process_that_ended_late(build: Callable[..., Path]) -> None:
    """A process that did nothing more may have been stopped."""
    case = CASES["signal"].broken
    trace = build({"t1": case["t1"], "t2": case["t2"][:-2]})
    assert verdict_of(trace).violations == []
    with (trace / "info" / "processes.jsonl").open("a") as file:
        from tests.trace.builder import BOOT

        json.dump({"exit": {"process": 0, "end_unix_ns": BOOT + T0 + END}}, file)
    found = verdict_of(trace).violations
    assert [(one.rule, one.severity) for one in found] == [("cond-wakeup", "warning")]
    assert verdict_of(trace, patience_ns=60 * S).violations == []


def test_repeated(build: Callable[..., Path]) -> None:
    threads: Threads = {
        "t1": [event for at in range(5) for event in (taken(at * 1000), free(at * 1000 + 100))],
        "t2": [event for at in range(5) for event in (taken(at * 1000 + 50), free(at * 1000 + 60))],
    }
    (one,) = verdict_of(build(threads)).violations
    assert one.count == 5
    assert [event.ts_ns for event in one.events] == [0, 50, 100]


# ---- the command ----


def test_command(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build(CASES["mutex"].broken)
    out = json.loads(ptt("verify", "--format", "json", trace, status=1).stdout)
    assert set(out) == {"violations", "checked", "skipped", "gaps"}
    (one,) = out["violations"]
    assert {"rule", "severity", "process", "threads", "objects", "sites", "ts_ns", "message"} < set(one)
    assert (one["rule"], one["process"], one["threads"]) == ("mutex-exclusion", 100, [1, 2])
    assert one["objects"] == [hex(LOCK)]
    assert [event["event"] for event in one["events"]] == ["MUTEX_TAKEN", "MUTEX_TAKEN", "MUTEX_FREE"]
    assert "thread 2 was given it at 0.000000050 s" in one["message"]
    assert set(out["checked"]) == set(_verifier.rules())
    text = ptt("verify", trace, status=1).stdout
    assert "error: mutex-exclusion" in text
    assert "thread 1 took mutex" in text
    assert "not judged" not in text
    rows = list(csv.reader(io.StringIO(ptt("verify", "--format", "csv", trace, status=1).stdout)))
    assert [len(row) for row in rows] == [9, 9]
    good = build(CASES["mutex"].kept)
    assert "no broken promise" in ptt("verify", good).stdout
    assert ptt("verify", good / "nothing", status=2).stderr.startswith("ptt: error: ")


def test_rules_know_their_routines() -> None:
    """Each routine that tells a result has errors that it may return, but for a few."""
    routines = {
        event.name.removesuffix("_OUT")
        for event in BY_ID.values()
        if event.name.endswith("_OUT") and any(f.name == "result" for f in event.fields)
    }
    from tests.support import ROOT

    text = (ROOT / "native" / "verify" / "calls.c").read_text(encoding="utf-8")
    missing = {name for name in routines if f'"{name}"' not in text}
    others = {name for name in missing if name.startswith(("MTX_", "CND_", "THRD_", "FUTEX_"))}
    assert missing - others == {"THREAD_SETNAME", "SEM_OPEN", "SEM_CLOSE", "SEM_UNLINK"}
