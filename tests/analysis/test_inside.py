"""What the holder of a lock did while other threads waited for the lock."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from nptltrace.catalog import SYS_CALLS
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

T0 = 10**12
MS = 1_000_000
A, B, GATE = 0x4040, 0x5050, 0x6060
TAKE, SLEEP, WAIT, GIVE = 0x11, 0x22, 0x33, 0x44

pytestmark = pytest.mark.usefixtures("native_in_process")


def event(ms: float, name: str, obj: int = A, site: int = 5, **fields: int) -> Event:
    variant = "WAITED" if "TAKEN" in name and fields else ""
    return Event(T0 + int(ms * MS), name, obj, site, variant=variant, fields=fields)


def taken(ms: float, obj: int = A, waited: float | None = None, site: int = TAKE) -> Event:
    fields = {} if waited is None else {"result": 0, "wait_ns": int(waited * MS)}
    return event(ms, "MUTEX_TAKEN", obj, site, **fields)


def free(ms: float, obj: int = A) -> Event:
    return event(ms, "MUTEX_FREE", obj, GIVE)


def wait(ms: float, obj: int = A, owner: int = 0) -> Event:
    return event(ms, "MUTEX_WAIT", obj, WAIT, owner=owner)


def sleep(begin: float, end: float, call: str = "fsync") -> list[Event]:
    number = SYS_CALLS.index(call)
    length = int((end - begin) * MS)
    return [
        event(begin, "SYS_CALL_IN", 0, SLEEP, call=number),
        event(end, "SYS_CALL_OUT", 0, SLEEP, call=number, result=0, wait_ns=length),
    ]


def reading(ms: float, slices: int, ran: float, ready: float) -> Event:
    fields = {"slices": slices, "ran_ns": int(ran * MS), "ready_ns": int(ready * MS)}
    return event(ms, "SCHED_READING", 0, 0, **fields)


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    def make(*threads: list[Event]) -> Path:
        session = {"state": "complete", "level": "2"}
        made = Builder(tmp_path / "run.ptt", session=session)
        for number, events in enumerate(threads, 1):
            made.thread(number, events)
        sites = {str(site): f"{site:#x}" for site in (5, TAKE, SLEEP, WAIT, GIVE)}
        made.processes = [
            {"process": {"index": 0, "pid": 100, "exe": "/bin/x"}},
            {"sites": {"process": 0, "sites": sites}},
        ]
        return made.write()

    return make


def inside(trace: Path, lock: int = A, **part: Any) -> dict[tuple[str, str | None], float]:
    """Return how long others waited meanwhile, in ms, by state and call."""
    traces = nptltrace.open(trace)
    locks = {row["lock_id"]: row["addr"] for row in traces.table("objects").to_pylist()}
    sums: Counter[tuple[str, str | None]] = Counter()
    for row in traces.sql("select * from hold_samples", **part).to_pylist():
        if locks[row["lock_id"]] == lock:
            sums[row["state"], row["call"]] += row["waited_ns"]
    return {what: ns / MS for what, ns in sums.items()}


def reported(trace: Path, ptt: Ptt, *options: str) -> list[dict[str, Any]]:
    document = json.loads(ptt("report", "--format", "json", *options, trace).stdout)
    [lock] = [item for item in document["objects"] if item["object"] == hex(A)]
    return [*lock["inside"]]


def test_only_the_time_with_waiters_counts(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build(
        [taken(0), *sleep(2, 12), free(20)],
        [wait(5, owner=1), taken(20, waited=15)],
    )
    # Nothing is known of the holder's processor outside of the call.
    assert inside(trace) == {("asleep", "fsync"): 7, ("unknown", None): 8}
    unknown, asleep = reported(trace, ptt)
    assert (asleep["what"], asleep["call"], asleep["waited_ns"]) == ("asleep", "fsync", 7 * MS)
    assert (unknown["what"], unknown["call"], unknown["site"]) == ("unknown", None, "")
    assert asleep["share"] == pytest.approx(7 / 15)
    text = " ".join(ptt("report", trace).stdout.split())
    assert f"| the holders: 53% not known, 47% asleep in fsync at {SLEEP:#x}" in text


def test_nothing_counts_without_waiters(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build([taken(0), *sleep(2, 12), free(20)], [taken(21), free(22)])
    assert inside(trace) == {}
    assert reported(trace, ptt) == []
    assert "the holders" not in ptt("report", trace).stdout


def test_a_moment_counts_for_each_waiter(build: Callable[..., Path]) -> None:
    trace = build(
        [taken(0), *sleep(2, 12), *sleep(12, 20, "nanosleep"), free(20)],
        [wait(10, owner=1), taken(20, waited=10), free(21)],
        [wait(16, owner=1), taken(22, waited=6), free(23)],
    )
    # From 20 to 21 ms the second thread holds the lock, and the third waits.
    assert inside(trace) == {
        ("asleep", "fsync"): 2, ("asleep", "nanosleep"): 12, ("unknown", None): 1,
    }  # fmt: skip


def test_readings_divide_the_time_between_calls(build: Callable[..., Path]) -> None:
    call, back = sleep(11, 21)
    trace = build(
        [
            event(0, "THREAD_BEGIN", 0x1000), reading(1, 1, 0, 0), taken(1),
            # 10 ms: 6 on the processor, 3 ready, 1 asleep in an unknown call
            reading(11, 3, 6, 3), call,
            # 5 ms on the processor
            reading(21, 4, 6, 3), back, free(26),
        ],
        [wait(1.5, owner=1), taken(26, waited=24.5)],
    )  # fmt: skip
    shares = inside(trace)
    assert shares.pop(("asleep", "fsync")) == 10
    assert shares == {
        ("running", None): pytest.approx(5 + 9.5 * 0.6, abs=0.01),
        ("ready", None): pytest.approx(9.5 * 0.3, abs=0.01),
        ("asleep", None): pytest.approx(9.5 * 0.1, abs=0.01),
    }


def test_a_holder_that_waits_for_another_lock(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build(
        [taken(0), wait(10, B, owner=3), taken(30, B, waited=20), free(31, B), free(32)],
        [wait(2, owner=1), taken(32, waited=30), free(33)],
        [taken(0, B), *sleep(1, 29), free(30, B)],
    )
    assert inside(trace) == {("unknown", None): 10, ("blocked", None): 20}
    assert inside(trace, B) == {("asleep", "fsync"): 19, ("unknown", None): 1}
    blocked = reported(trace, ptt)[0]
    assert (blocked["what"], blocked["object"], blocked["kind"]) == ("blocked", hex(B), "mutex")
    assert blocked["site"] == hex(WAIT)
    rows = nptltrace.open(trace).sql(
        "select h.dur_ns, h.wait_id = w.wait_id as same from hold_samples h join waits w "
        "on w.tid = h.tid and w.lock_id = h.wanted_lock"
    )
    assert rows.to_pylist() == [{"dur_ns": 20 * MS, "same": True}]
    assert f"67% waiting for mutex {B:#x} at" in " ".join(ptt("report", trace).stdout.split())


def test_a_deadlock_is_blocked_to_the_end(build: Callable[..., Path]) -> None:
    trace = build(
        [taken(0), wait(10, B, owner=2)],
        [taken(0, B), wait(20, owner=1)],
        [event(100, "THREAD_BEGIN", 0x1000)],
    )
    assert inside(trace)["blocked", None] == 80
    assert inside(trace, B)["blocked", None] == 80


def test_holders_share_a_moment(build: Callable[..., Path]) -> None:
    def read(ms: float) -> Event:
        return event(ms, "RWLOCK_TAKEN_READ", A, TAKE)

    def write(ms: float, **fields: int) -> Event:
        return event(ms, "RWLOCK_WAIT", A, WAIT, **fields)

    trace = build(
        [read(0), *sleep(1, 19), event(20, "RWLOCK_FREE")],
        [read(0), *sleep(1, 19, "nanosleep"), event(20, "RWLOCK_FREE")],
        [
            write(4, write=1, timed=0, owner=0, readers=2),
            event(20, "RWLOCK_TAKEN_WRITE", A, TAKE, result=0, wait_ns=16 * MS),
        ],
    )
    assert inside(trace) == {
        ("asleep", "fsync"): 7.5, ("asleep", "nanosleep"): 7.5, ("unknown", None): 1,
    }  # fmt: skip


def test_windows_add_up(build: Callable[..., Path]) -> None:
    trace = build(
        [taken(0), *sleep(2, 12), wait(14, B), taken(16, B, waited=2), free(17, B), free(20)],
        [wait(5, owner=1), taken(20, waited=15)],
    )
    whole, parts = inside(trace), Counter[Any]()
    for begin in range(0, 24, 4):
        parts.update(inside(trace, start_ns=begin * MS, end_ns=(begin + 4) * MS))
    assert parts == pytest.approx(whole)


def test_stacks_say_what_the_holder_did(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build(
        [taken(0), *sleep(2, 12), free(20)],
        [wait(5, owner=1), taken(20, waited=15)],
    )
    command = ("report", "--by", "stack", "--show", "inside")
    document = json.loads(ptt(*command, "--format", "json", trace).stdout)
    assert document["stacks"] == [
        {"stack": ["[unknown]", hex(TAKE)], "waited_ns": 8 * MS, "parts": 1},
        {"stack": ["[asleep in fsync]", hex(SLEEP)], "waited_ns": 7 * MS, "parts": 1},
    ]
    assert "[asleep in fsync]" in ptt(*command, "--bottom-up", trace).stdout
    folded = trace.with_name("inside.folded")
    ptt("export", "--format", "folded", "--show", "inside", "-o", folded, trace)
    assert f"{SLEEP:#x};[asleep in fsync]" in folded.read_text()
    profile = trace.with_name("inside.json")
    ptt("export", "--format", "firefox", "--show", "inside", "-o", profile, trace)
    [thread] = json.loads(profile.read_text())["threads"]
    assert sorted(thread["samples"]["weight"]) == [7, 8]
    assert "[asleep in fsync]" in thread["stringArray"]
