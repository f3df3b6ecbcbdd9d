"""A thread id that the kernel gave out twice: no output mixes up the threads that had it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

T0 = 10**12
MAIN, TWICE = 100, 7
LEFT, SHORT = 0x40000, 0x40040
TAKES, FREES, WAITS = 5, 6, 7


def at(us: int, name: str, of: int = 0, site: int = 0, variant: str = "", **fields: Any) -> Event:
    return Event(T0 + us * 1000, name, of, site, variant=variant, fields=fields)


def begun(us: int, pthread: int, serial: int) -> Event:
    return at(us, "THREAD_BEGIN", pthread, creator=MAIN, serial=serial)


@pytest.fixture
def trace(trace_dir: Path) -> Path:
    """The first thread dies with a lock, and the main thread waits for it later; the second waits.

    The recorder read the name `old` in /proc while the first thread lived.
    """
    made = Builder(trace_dir)
    made.processes = [
        {"process": {"index": 0, "pid": MAIN, "exe": "/bin/prog", "cmdline": ["prog"]}},
        {"sites": {"process": 0, "sites": {str(n): hex(0x401000 + n) for n in range(1, 9)}}},
        {"thread": {"process": 0, "tid": TWICE, "name": "old", "clock": T0 + 15_000}},
    ]
    made.thread(
        MAIN,
        [
            at(9, "NEW_THREAD_CREATED", 0x7000, serial=1),
            at(49, "NEW_THREAD_CREATED", 0x7000, serial=2),
            at(50, "MUTEX_TAKEN", SHORT, TAKES),
            at(80, "MUTEX_FREE", SHORT, FREES),
            at(90, "MUTEX_WAIT", LEFT, WAITS, owner=TWICE),
        ],
    )
    first = [begun(10, 0x7000, 1), at(20, "MUTEX_TAKEN", LEFT, TAKES), at(40, "THREAD_END", 0x7000)]
    second = [
        begun(60, 0x7000, 2),
        at(70, "MUTEX_WAIT", SHORT, WAITS, owner=MAIN),
        at(85, "MUTEX_TAKEN", SHORT, WAITS, "WAITED", result=0, wait_ns=15_000),
        at(86, "MUTEX_FREE", SHORT, FREES),
        at(100, "THREAD_END", 0x7000),
    ]
    made.thread(TWICE, first)
    made.thread(TWICE, second)
    return made.write()


def named(trace: Path, *lines: tuple[int, str]) -> None:
    """Add names that the recorder saw, with their times in us."""
    path = trace / "info" / "processes.jsonl"
    for us, name in lines:
        line = {"process": 0, "tid": TWICE, "name": name, "clock": T0 + us * 1000}
        path.write_text(path.read_text() + json.dumps({"thread": line}) + "\n")


# The second thread has the name of its creator, the program, unless the recorder saw another name.
@pytest.mark.parametrize("second", ["prog", "new"])
def test_names(ptt: Ptt, trace: Path, second: str) -> None:
    if second == "new":
        named(trace, (65, "new"))
    report = json.loads(ptt("report", "--by", "thread", "--format", "json", trace).stdout)
    names = [(t["start_ns"] // 1000, t["name"]) for t in report["threads"] if t["tid"] == TWICE]
    assert sorted(names) == [(1, "old"), (51, second)]
    lines = [json.loads(line) for line in ptt("view", "--format", "jsonl", trace).stdout.split("\n")
             if line]  # fmt: skip
    seen = {(line["ts_ns"] > 45_000, line["thread_name"]) for line in lines if line["tid"] == TWICE}
    assert seen == {(False, "old"), (True, second)}
    shown = ptt("view", trace).stdout
    assert "7 old " in shown
    assert f"7 {second} " in shown


def test_tables(trace: Path) -> None:
    def rows(query: str) -> list[Any]:
        return [tuple(row.values()) for row in traces.sql(query).to_pylist()]

    traces = nptltrace.open(trace)
    assert rows("select gen, name from threads where tid = 7 order by gen") == [
        (1, "old"), (2, "prog"),
    ]  # fmt: skip
    # The first thread died with the lock, although the second has its id when the wait begins.
    query = "select tid, gen, thread_name, owner_gen, owner_name from named_waits order by t_ns"
    assert rows(query) == [(TWICE, 2, "prog", 1, "prog"), (MAIN, 1, "prog", 1, "old")]
    query = "select gen, thread_name, open from named_holds where tid = 7 order by t_ns"
    assert rows(query) == [(1, "old", True), (2, "prog", False)]
    query = "select gen, min(start_ns), max(end_ns) from thread_timeline"
    lives = rows(f"{query} where tid = 7 group by gen order by gen")
    assert lives == [(1, 1000, 31_000), (2, 51_000, 91_000)]
    spent = "select gen, wait_ns from idle_vs_contended where tid = 7 order by gen"
    assert rows(spent) == [(1, 0), (2, 15_000)]


def test_findings(ptt: Ptt, trace: Path) -> None:
    message = ptt("check", trace, status=None).stdout
    assert "thread 7 (old)" in message
    assert "thread 7 (prog)" not in message


def test_a_cut_keeps_both_threads_apart(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    named(trace, (65, "new"))
    for begin, names in (("0", ["old", "new"]), ("45us", ["new"])):
        part = tmp_path / f"{begin}.ptt"
        ptt("cut", "--from", begin, trace, "-o", part)
        traces = nptltrace.open(part)
        query = "select thread_name from thread_names where tid = 7 order by gen"
        assert [row["thread_name"] for row in traces.sql(query).to_pylist()] == names
        traces.close()


OWNER, WAITER, OTHER = 0, 1, 2


@pytest.mark.parametrize("shares", [True, False])
def test_the_owner_in_another_process(trace_dir: Path, shares: bool) -> None:  # noqa: FBT001
    """If two processes have a thread of that id, the owner is in the process with that memory."""
    made = Builder(trace_dir)
    for index in (OWNER, WAITER, OTHER):
        start = 0x7000_0000 + index * 0x10000
        place = {"start": hex(start), "end": hex(start + 0x1000), "offset": 0}
        place["file"] = "elsewhere" if index == OTHER else "f"
        made.processes.append(
            {"process": {"index": index, "pid": 200 + index, "exe": f"/p{index}"}}
        )
        if shares:
            made.processes.append({"shared": {"process": index, "shared": [place]}})
    word = 0x40
    held = at(0, "MUTEX_TAKEN", 0x7000_0000 + word)
    waits = at(50, "MUTEX_WAIT", 0x7001_0000 + word, owner=TWICE)
    made.thread(TWICE, [held] if shares else [at(0, "MUTEX_TAKEN", 64)], pid=200, process=OWNER)
    made.thread(TWICE, [at(10, "MUTEX_TAKEN", 64)], pid=202, process=OTHER)
    made.thread(9, [waits], pid=201, process=WAITER)
    traces = nptltrace.open(made.write())
    (row,) = traces.sql("select owner_tid, owner_process from waits").to_pylist()
    # Without shared memory, nobody knows which process it is.
    assert (row["owner_tid"], row["owner_process"]) == (TWICE, OWNER if shares else WAITER)
