"""Memory of a lock is used for another lock: a name chooses the locks of that name alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

PROGRAM = """
import threading

def use(lock):
    held = threading.get_ident()
    def wait():
        ready.append(threading.get_ident())
        with lock:
            pass
    ready = []
    with lock:
        thread = threading.Thread(target=wait)
        thread.start()
        for _ in range(20000):
            ready and None
    thread.join()

def orders():
    use(threading.Lock())

def accounts():
    use(threading.RLock())

for _ in range(3):
    orders()
    accounts()
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


def rows(ptt: Ptt, trace: Path, query: str, *options: str) -> list[dict[str, Any]]:
    found = ptt("sql", "--format", "jsonl", *options, trace, query).stdout.splitlines()
    return [json.loads(line) for line in found]


def counts(ptt: Ptt, trace: Path, *chosen: str) -> dict[str, int]:
    """Return what one choice has, and see that other readers have the same."""
    options = ("--object", ",".join(chosen))
    (found,) = rows(ptt, trace, COUNTS, *options)
    view = ptt("view", "--format", "jsonl", *options, trace).stdout.splitlines()
    stat = json.loads(ptt("stat", "--format", "json", *options, trace).stdout)
    report = json.loads(ptt("report", "--format", "json", *options, trace).stdout)
    assert len(view) == stat["events"] == found["events"]
    assert sum(one["hold_ns"] for one in report["objects"]) == found["hold_ns"]
    with nptltrace.open(trace) as opened:
        again = opened.report(object=list(chosen))
        assert sum(one["hold_ns"] for one in again["objects"]) == found["hold_ns"]
    return found


def total(parts: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def test_a_number_behind_an_address_chooses_one_object(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    source = (ROOT / "tests/agreement/programs/reused.c").read_text()
    trace = record(compile_c(source))
    found = rows(ptt, trace, OBJECTS)
    heap, *_ = [one for one in found if one["name_source"] == "address"]
    turns = [one["gen"] for one in found if one["addr"] == heap["addr"]]
    assert len(turns) == 6
    address = f"{heap['addr']:#x}" if isinstance(heap["addr"], int) else heap["addr"]
    each = [counts(ptt, trace, f"{address}#{turn}") for turn in turns]
    assert [one["holds"] for one in each] == [2, 3, 4, 5, 6, 7]
    assert all(one["objects"] == 1 for one in each)
    assert total(each) == counts(ptt, trace, address)
    assert counts(ptt, trace, f"{address}#1", f"{address}#3") == total([each[0], each[2]])
    # A variable has its name whatever is made in it.
    assert counts(ptt, trace, "named")["objects"] == 6
    error = ptt("view", "--object", f"{address}#7", trace, status=2).stderr
    assert f"no object is {address}#7" in error


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="its locks are no semaphores")
def test_a_name_chooses_the_locks_of_that_name(
    record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    script = tmp_path / "turns.py"
    script.write_text(PROGRAM)
    trace = record(sys.executable, script)
    found = [one for one in rows(ptt, trace, OBJECTS) if "turns.py" in one["name"]]
    named = [one for one in found if one["name"].startswith(("Lock of orders", "RLock of acc"))]
    assert len({one["name"] for one in named}) == 6
    shared = [one for one in named if [o["addr"] for o in named].count(one["addr"]) > 1]
    assert len(shared) > 1, named
    each = [counts(ptt, trace, one["name"]) for one in shared]
    numbered = [
        counts(ptt, trace, f"{address}#{one['gen']}")
        for one in shared
        for address in [f"{one['addr']:#x}" if isinstance(one["addr"], int) else one["addr"]]
    ]
    assert each == numbered
    assert all(one["objects"] == 1 and one["holds"] >= 2 for one in each)
    assert total(each) == counts(ptt, trace, *(one["name"] for one in shared))
