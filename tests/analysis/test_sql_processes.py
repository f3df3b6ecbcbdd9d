"""SQL over programs of several processes: every wait is one row, with the right names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

T0 = 10**12
LOCK = 0x40000
BASE = 0x401000
CHILDREN = 3
TAKES, FREES, WAITS = 5, 6, 7


def taken(ts: int, waited: int | None = None, lock: int = LOCK) -> Event:
    if waited is None:
        return Event(T0 + ts, "MUTEX_TAKEN", lock, TAKES)
    fields = {"result": 0, "wait_ns": waited}
    return Event(T0 + ts, "MUTEX_TAKEN", lock, WAITS, variant="WAITED", fields=fields)


def free(ts: int, lock: int = LOCK) -> Event:
    return Event(T0 + ts, "MUTEX_FREE", lock, FREES)


def wait(ts: int, owner: int, lock: int = LOCK) -> Event:
    return Event(T0 + ts, "MUTEX_WAIT", lock, WAITS, fields={"owner": owner})


def process(index: int, parent: int | None = None) -> list[dict[str, Any]]:
    """Return the entries of a process; its program lies at the address it had in the parent."""
    about: dict[str, Any] = {"index": index, "pid": 100 + index, "exe": "/bin/x", "cmdline": ["x"]}
    module = {"path": "/bin/x", "build_id": "ab" * 20, "start": "0x400000", "end": "0x500000"}
    sites = {str(n): hex(BASE + n) for n in range(1, 20)}
    return [
        {"process": about if parent is None else about | {"parent": parent}},
        {"modules": {"process": index, "modules": [module]}},
        {"sites": {"process": index, "sites": sites}},
    ]


@pytest.fixture
def forked(tmp_path: Path) -> Any:
    """A program with children; in each child, the second thread waits twice for the first."""
    made = Builder(tmp_path / "forked.ptt")
    made.processes = process(0)
    for number in range(CHILDREN):
        pid, index = 101 + number, number + 1
        made.processes += process(index, parent=0)
        holder, waiter = 10 * pid, 10 * pid + 1
        made.thread(holder, [taken(0), free(100), taken(300), free(400)], pid=pid, process=index)
        second = [wait(20, holder), taken(100, 80), free(110), wait(320, holder), taken(400, 80)]
        made.thread(waiter, [*second, free(410)], pid=pid, process=index)
    return nptltrace.open(made.write())


def rows(traces: Any, query: str) -> list[Any]:
    return [tuple(row.values()) for row in traces.sql(query).to_pylist()]


def test_a_call_site_is_one_row(forked: Any) -> None:
    for table, key in (("sites", "site_id"), ("stacks", "stack_id")):
        query = "select count(*), count(distinct (run_id, {})) from {}"
        assert rows(forked, query.format(key, table)) == [(19, 19)]
        assert len(set(forked.table(table)[key].to_pylist())) == 19
    grouped = forked.table("waits").group_by("stack_id").aggregate([([], "count_all")])
    assert grouped["count_all"].to_pylist() == [2 * CHILDREN]


@pytest.mark.parametrize(("view", "table"), [("named_waits", "waits"), ("named_holds", "holds")])
def test_views_have_the_rows_of_their_table(forked: Any, view: str, table: str) -> None:
    query = "select count(*), sum(dur_ns) from {}"
    assert rows(forked, query.format(view)) == rows(forked, query.format(table))
    assert rows(forked, query.format(view))[0][0] > 0


def test_sums_of_views_are_those_of_the_tables(forked: Any) -> None:
    waited = rows(forked, "select count(*), sum(dur_ns) from waits where class = 'contended'")
    assert waited == [(2 * CHILDREN, 160 * CHILDREN)]
    query = "select sum(waits), sum(wait_ns) from {}"
    for view in ("contention_by_object", "contention_by_site"):
        assert rows(forked, query.format(view)) == waited
    assert rows(forked, "select sum(waits), sum(wait_caused_ns) from blame") == waited
    assert rows(forked, "select count(*) from lock_order_cycles") == [(0,)]


def test_owner_and_waker_may_be_of_another_process(tmp_path: Path) -> None:
    made = Builder(tmp_path / "shared.ptt")
    for index in (0, 1):
        start = 0x7000_0000 + index * 0x10000
        place = {"start": hex(start), "end": hex(start + 0x1000), "file": "f", "offset": 0}
        known = process(index, None)
        known[1]["modules"]["modules"][0] |= {
            "path": f"/bin/p{index}",
            "build_id": f"{index}a" * 20,
        }
        made.processes += [*known, {"shared": {"process": index, "shared": [place]}}]
        made.processes.append({"thread": {"process": index, "tid": index + 1, "name": f"n{index}"}})
    made.thread(1, [taken(0, lock=0x7000_0040), free(100, 0x7000_0040)], pid=100, process=0)
    theirs = 0x7001_0040
    second = [wait(20, 1, theirs), taken(100, 80, theirs), free(150, theirs)]
    made.thread(2, second, pid=101, process=1)
    traces = nptltrace.open(made.write())
    query = "select process, owner_process, waker_process, owner_name, waker_name from named_waits"
    assert rows(traces, query) == [(1, 0, 0, "n0", "n0")]
    query = "select s.module, w.owner_stack is null from waits w join sites s on {} = site_id"
    for column in ("owner_stack", "waker_stack"):
        assert rows(traces, query.format(column)) == [("p0", False)]
    assert rows(traces, "select waker_name, wakee_name from who_wakes_whom") == [("n0", "n1")]
