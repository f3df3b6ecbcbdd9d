"""Another lock follows at the address of a lock: a name chooses only locks of that name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import nptltrace
from nptltrace.analysis.model import Counted
from nptltrace.analysis.report.live_contention import Follower
from nptltrace.api import Traceset
from nptltrace.catalog import DOMAINS
from nptltrace.trace.objects.chosen import Chosen
from tests.support import ROOT
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

PROGRAM = """
import threading

def use(lock, count):
    def wait():
        with lock:
            pass
    threads = [threading.Thread(target=wait) for _ in range(count)]
    with lock:
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()

def orders():
    use(threading.Lock(), 1)

def accounts():
    use(threading.Lock(), 2)

orders()
accounts()
orders()
"""
COUNTS = """
select (select count(*) from waits) as waits, (select count(*) from holds) as holds,
       (select count(*) from events) as events, (select count(*) from objects) as objects,
       (select coalesce(sum(dur_ns), 0) from holds) as hold_ns
"""
OBJECTS = """
select addr, gen, name, name_source from objects
where addr in (select addr from objects group by process, addr, kind having count(*) > 1)
order by addr, gen
"""


def counts(opened: nptltrace.Traceset, *chosen: str) -> dict[str, int]:
    """Return the counts of one choice, and insist that the report and the reader agree."""
    found: dict[str, int] = opened.sql(COUNTS, object=chosen).to_pylist()[0]
    report = opened.report(object=chosen)
    assert sum(item["hold_ns"] for item in report["objects"]) == found["hold_ns"]
    assert opened.stat(object=chosen)["events"] == found["events"]
    return found


def total(parts: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def test_a_number_behind_an_address_chooses_one_object(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    source = (ROOT / "tests/agreement/programs/reused.c").read_text()
    trace = record(compile_c(source))
    with nptltrace.open(trace) as opened:
        found = opened.sql(OBJECTS).to_pylist()
        heap = next(item["addr"] for item in found if item["name_source"] == "address")
        turns = [f"{heap:#x}#{item['gen']}" for item in found if item["addr"] == heap]
        each = [counts(opened, turn) for turn in turns]
        assert [figures["holds"] for figures in each] == [2, 3, 4, 5, 6, 7]
        assert all(figures["objects"] == 1 for figures in each)
        assert total(each) == counts(opened, f"{heap:#x}")
        assert counts(opened, turns[0], turns[2]) == total([each[0], each[2]])
        # A variable keeps its name for every lock in it.
        assert counts(opened, "named")["objects"] == 6
    shown = ptt("view", "--object", turns[1], "--format", "jsonl", trace).stdout.splitlines()
    assert len(shown) == each[1]["events"]
    error = ptt("view", "--object", f"{heap:#x}#7", trace, status=2).stderr
    assert f"no object is {heap:#x}#7" in error


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its locks are no semaphores")
def test_a_name_chooses_the_locks_of_that_name(record: Recorder, ptt: Ptt, tmp_path: Path) -> None:
    script = tmp_path / "turns.py"
    script.write_text(PROGRAM)
    trace = record(sys.executable, script)
    with nptltrace.open(trace) as opened:
        found = opened.sql(OBJECTS).to_pylist()
        locks = [
            item for item in found if item["name"].startswith(("Lock of orders", "Lock of acc"))
        ]
        assert len({lock["addr"] for lock in locks}) == 1, found
        names = [lock["name"] for lock in locks]
        each = [counts(opened, name) for name in names]
        assert [figures["holds"] for figures in each] == [2, 3, 2]
        assert all(figures["objects"] == 1 for figures in each)
        assert each == [counts(opened, f"{lock['addr']:#x}#{lock['gen']}") for lock in locks]
        assert total(each) == counts(opened, *names)
    shown = ptt("view", "--object", names[1], "--format", "jsonl", trace).stdout.splitlines()
    assert len(shown) == each[1]["events"]
    ptt("cut", "--object", names[0], "-o", tmp_path / "part", trace)
    with nptltrace.open(tmp_path / "part") as opened:
        assert opened.report()["objects"][0]["hold_ns"] == each[0]["hold_ns"]


def test_a_lock_may_follow_at_the_address_of_another_in_a_live_recording(tmp_path: Path) -> None:
    """A live recording does not say yet when another lock will be at the address."""
    lock, start = 0x4040, 10**12
    made = Builder(tmp_path / "grows.ptt")

    def turn(ns: int) -> list[Event]:
        fields = {"result": 0, "wait_ns": 50}
        return [
            Event(start + ns, "MUTEX_INIT", lock, 3),
            Event(start + ns + 10, "MUTEX_WAIT", lock, 5, fields={"owner": 2}),
            Event(start + ns + 60, "MUTEX_TAKEN", lock, 5, variant="WAITED", fields=fields),
            Event(start + ns + 70, "MUTEX_FREE", lock, 6),
            Event(start + ns + 80, "MUTEX_DESTROY", lock, 7),
        ]

    made.thread(1, [*turn(0), *turn(100), *turn(200)])
    known = [Chosen(0, lock, DOMAINS["mutex"], 100)]
    follower = Follower(Traceset(made.write()), choose=lambda: Counted(objects=known))
    follower.read(190)
    assert follower.present().figures.total_waits == 1
    known[:] = [known[0]._replace(end_ns=200)]
    follower.read()
    figures = follower.present().figures
    assert (figures.total_waits, figures.total_wait_ns) == (1, 50)


def test_a_finding_names_the_lock_of_its_events(tmp_path: Path) -> None:
    """The cycle closes after a lock has ended and another lock lies at its address."""
    start, ended, other, last = 10**12, 0x4040, 0x4080, 0x40C0
    made = Builder(tmp_path / "cycle.ptt")

    def nested(ns: int, *locks: int) -> list[Event]:
        taken = [Event(start + ns + n, "MUTEX_TAKEN", one, ns + n) for n, one in enumerate(locks)]
        free = [Event(start + ns + 5 - n, "MUTEX_FREE", one, 9) for n, one in enumerate(locks)]
        return [*taken, *reversed(free)]

    def once(ns: int, name: str, lock: int = ended) -> Event:
        return Event(start + ns, name, lock, 3)

    begin = [once(n, "MUTEX_INIT", lock) for n, lock in enumerate((ended, other, last))]
    made.thread(1, [*begin, *nested(10, ended, other)])
    follows = (once(30, "MUTEX_DESTROY"), once(31, "MUTEX_INIT"))
    made.thread(2, [*nested(20, last, ended), *follows])
    made.thread(3, [*nested(40, other, last), *nested(50, ended)])
    with nptltrace.open(made.write()) as opened:
        for choice, count in ((f"{ended:#x}#1", 1), (f"{ended:#x}#2", 0), (f"{other:#x}", 1)):
            assert len(opened.check(object=choice)["findings"]) == count
            for question in ("select * from findings", "select * from lock_cycles"):
                assert opened.sql(question, object=choice).num_rows == count
