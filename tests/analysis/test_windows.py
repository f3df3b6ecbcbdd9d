"""A window of a trace begins with the true state: its sums are cut by hand from the whole."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nptltrace
from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace.analysis.answers import all_tables
from nptltrace.analysis.cutting import write_cut
from nptltrace.analysis.findings import find
from nptltrace.analysis.model import Window, model_tables, run_model
from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.report.contention import contention
from nptltrace.analysis.report.live_contention import Follower
from nptltrace.analysis.sql.query import Database
from nptltrace.api import Traceset
from nptltrace.export.writing.timeline import Timeline
from nptltrace.trace.copying import Part
from nptltrace.trace.reading import prefetch
from nptltrace.ui.viewer import Viewer
from tests.analysis.compare import cut
from tests.trace.builder import BOOT, Builder, Event
from tests.ui.reference import ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from tests.support import Ptt, Recorder

T0 = 10**12
MS = 10**6
LOCK, OTHER, SEM = 0x404040, 0x404080, 0x404100
WAITERS = (2, 3, 4)
PARTS_OF_PATH = ("run_ns", "latency_ns", "open_ns")


def event(ms: int, name: str, obj: int, site: int, variant: str = "", **fields: Any) -> Event:
    return Event(T0 + ms * MS, name, obj, site, variant=variant, fields=fields)


@pytest.fixture
def convoy(tmp_path: Path) -> Path:
    """Thread 1 holds a lock from 20 to 100 ms; 2, 3 and 4 wait for it from 30 ms on; 5 is idle."""
    made = Builder(tmp_path / "convoy.ptt")
    made.thread(1, [
        event(0, "THREAD_BEGIN", 0x1000, 0), event(20, "MUTEX_TAKEN", LOCK, 5),
        event(100, "MUTEX_FREE", LOCK, 6), event(200, "THREAD_END", 0x1000, 0),
    ])  # fmt: skip
    for n, tid in enumerate(WAITERS):
        got = 100 + 10 * n
        made.thread(tid, [
            event(30, "MUTEX_WAIT", LOCK, 7, owner=1),
            event(got, "MUTEX_TAKEN", LOCK, 7, "WAITED", result=0, wait_ns=(got - 30) * MS),
            event(got + 5, "MUTEX_FREE", LOCK, 8), event(190 + n, "THREAD_END", 0x1000 + tid, 0),
        ])  # fmt: skip
    made.thread(5, [event(1, "SEM_POST", SEM, 9), event(195, "THREAD_END", 0x5000, 0)])
    made.thread(6, [event(2, "SEM_POST", SEM, 9), event(10, "THREAD_END", 0x6000, 0)])
    made.processes = [
        {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
        {"sites": {"process": 0, "sites": {str(n): hex(0x401000 + n) for n in range(1, 20)}}},
    ]
    return made.write()


def test_inside_of_waits(convoy: Path) -> None:
    report = contention(Traceset(convoy), window=Window(40 * MS, 90 * MS))
    assert (report.figures.waits, report.figures.wait_ns) == (3, 150 * MS)
    assert report.figures.wait_max_ns == 50 * MS
    (lock,) = report.objects
    assert (lock.threads, lock.max_waiters) == (4, 3)
    blamed = [(b.thread.tid, b.wait_caused_ns) for b in lock.blamed if b.thread]
    assert blamed == [(1, 150 * MS)]
    assert (lock.figures.holds, lock.figures.hold_ns) == (1, 50 * MS)
    # All living threads are there with their part inside, with or without an event.
    lives = {t.thread.tid: (t.start_ns, t.end_ns, t.figures.wait_ns) for t in report.threads}
    waited = dict.fromkeys(WAITERS, 50 * MS)
    assert lives == {tid: (40 * MS, 90 * MS, waited.get(tid, 0)) for tid in (1, *WAITERS, 5)}
    assert report.open_waits == []
    # The critical path is in the thread that holds the lock.
    assert [(part.thread.tid, part.run_ns) for part in report.path.threads] == [(1, 50 * MS)]


def test_inside_of_a_hold(convoy: Path) -> None:
    tables = model_tables(Traceset(convoy), window=Window(22 * MS, 25 * MS))
    (hold,) = tables.holds.to_pylist()
    assert (hold["tid"], hold["t_ns"], hold["dur_ns"], hold["open"]) == (1, 22 * MS, 3 * MS, False)
    assert tables.waits.num_rows == 0
    (lock,) = tables.objects.to_pylist()
    assert (lock["addr"], lock["holder_tid"], lock["waiters"]) == (LOCK, 1, 0)


def test_a_window_without_events(convoy: Path) -> None:
    report = contention(Traceset(convoy), window=Window(150 * MS, 160 * MS))
    assert (report.figures.waits, report.figures.holds, report.objects) == (0, 0, [])
    assert {t.thread.tid for t in report.threads} == {1, *WAITERS, 5}
    assert sum(t.running_ns for t in report.threads) == 50 * MS
    for begin in (-10 * MS, 500 * MS):
        empty = contention(Traceset(convoy), window=Window(begin, begin + MS))
        assert (empty.threads, empty.objects, empty.path.threads) == ([], [], [])


def test_a_part_of_a_wait_has_the_class_of_the_whole(tmp_path: Path) -> None:
    """The timeout is known only after the window; nobody is blamed for the wait in the window."""
    made = Builder(tmp_path / "late.ptt")
    made.thread(1, [event(0, "MUTEX_TAKEN", LOCK, 5), event(200, "MUTEX_FREE", LOCK, 6)])
    made.thread(2, [
        event(10, "MUTEX_WAIT", LOCK, 7, owner=1),
        event(100, "MUTEX_WAIT_END", LOCK, 7, result=110, wait_ns=90 * MS),
    ])  # fmt: skip
    report = contention(Traceset(made.write()), window=Window(20 * MS, 30 * MS))
    assert (report.figures.waits, report.figures.other_ns["timeout"]) == (0, 10 * MS)
    assert report.objects[0].blamed == []


def test_a_wake_up_lies_in_one_window(tmp_path: Path) -> None:
    """The wait that it ends may begin after it, or the woken thread may go on before it."""
    made = Builder(tmp_path / "stamped.ptt")
    # The release is stamped at 20 ms, but frees the lock some 30 ms later.
    made.thread(1, [event(0, "MUTEX_TAKEN", LOCK, 5), event(20, "MUTEX_FREE", LOCK, 6)])
    made.thread(2, [
        event(30, "MUTEX_WAIT", LOCK, 7, owner=1),
        event(52, "MUTEX_TAKEN", LOCK, 7, "WAITED", result=0, wait_ns=20 * MS),
    ])  # fmt: skip
    # Two readers: the last reader releases after the writer has woken.
    made.thread(3, [event(100, "RWLOCK_TAKEN_READ", OTHER, 5), event(155, "RWLOCK_FREE", OTHER, 6)])
    made.thread(4, [
        event(110, "RWLOCK_WAIT", OTHER, 7, write=1),
        event(160, "RWLOCK_TAKEN_WRITE", OTHER, 7, "WAITED", result=0, wait_ns=40 * MS),
    ])  # fmt: skip
    source = Traceset(made.write())
    for edges in ([25, 35, 45, 153], [10, 30, 155], [29, 31, 150, 156]):
        woken = [
            row["t_ns"] // MS
            for window in pairwise([None, *(ms * MS for ms in edges), None])
            for row in model_tables(source, window=Window(*window)).wakeups.to_pylist()
        ]
        assert woken == [30, 155], edges


def test_a_wait_that_never_ends(tmp_path: Path) -> None:
    made = Builder(tmp_path / "hung.ptt")
    made.thread(1, [event(0, "MUTEX_TAKEN", LOCK, 5), event(200, "MUTEX_TAKEN", OTHER, 6)])
    made.thread(2, [event(10, "MUTEX_WAIT", LOCK, 7, owner=1)])
    source = Traceset(made.write())
    report = contention(source, window=Window(50 * MS, 60 * MS))
    assert (report.figures.waits, report.figures.wait_ns) == (1, 10 * MS)
    (wait,) = report.open_waits
    assert (wait.t_ns, wait.dur_ns, wait.owner and wait.owner.tid) == (10 * MS, 50 * MS, 1)


@pytest.mark.parametrize("ends", [(), (90,)])
def test_the_path_through_waits_across_the_end_of_a_window(
    ends: tuple[int, ...], tmp_path: Path
) -> None:
    """A thread that waits at the end of a window waits on its critical path, even for ever."""
    made = Builder(tmp_path / "all.ptt")
    for tid, mine, other in ((1, LOCK, OTHER), (2, OTHER, LOCK)):
        made.thread(tid, [
            event(0, "THREAD_BEGIN", 0x1000 + tid, 0), event(10, "MUTEX_TAKEN", mine, 5),
            event(19 + tid, "MUTEX_WAIT", other, 7, owner=3 - tid),
            *(event(ms, "MUTEX_WAIT_END", other, 7, result=110, wait_ns=60 * MS) for ms in ends),
        ])  # fmt: skip
    made.processes = [
        {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
        {"exit": {"process": 0, "end_unix_ns": BOOT + T0 + 200 * MS, "status": 137}},
    ]
    source = Traceset(made.write())
    for begin, end in ((0, 15), (0, 60), (15, 60), (50, 60)):
        path = contention(source, window=Window(begin * MS, end * MS)).path
        assert (path.start_ns, path.end_ns) == (begin * MS, end * MS)
        spent = [sum(getattr(part, name) for part in path.threads) // MS for name in PARTS_OF_PATH]
        assert spent == [max(min(21, end) - begin, 0), 0, max(end - max(begin, 21), 0)]


def test_top_counts_from_a_time_on(convoy: Path, ptt: Ptt) -> None:
    follower = Follower(Traceset(convoy), begin_ns=40 * MS)
    follower.read(70 * MS)
    before = follower.present()
    (lock,) = before.objects
    assert (before.figures.wait_ns, before.figures.waits) == (90 * MS, 0)
    assert (lock.waiters, lock.longest_ns, lock.holder and lock.holder.tid) == (3, 40 * MS, 1)
    follower.read()
    after = follower.present()
    assert (after.figures.wait_ns, after.figures.waits) == ((30 + 40 + 50) * MS, 3)
    reported = ptt("top", "--from", "40ms", "--format", "json", convoy).stdout
    assert json.loads(reported)["wait_ns"] == 210 * MS


def test_export_of_a_window(convoy: Path) -> None:
    window = Window(40 * MS, 90 * MS)
    timeline = Timeline(Traceset(convoy), None, Scope(window))
    records = np.concatenate(list(timeline.records(1 << 20)))
    assert set(records["ts"].tolist()) == {40 * MS, 90 * MS}
    assert timeline.counts == {"waits": 3, "holds": 1, "wakeups": 0}
    assert len(timeline.lived()) == 5


# ---- random windows ----


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, program: Callable[[str], Path]
) -> Path:
    """A recording of a program that does something of everything."""
    path = tmp_path_factory.mktemp("recorded") / "mix.ptt"
    ptt("record", "-q", "-l", "2", "-o", path, "--", program("mix"), "5", "150")
    return path


def windows(seed: int, end: int, count: int) -> list[Window]:
    choose = random.Random(seed)  # noqa: S311
    return [Window(*sorted(choose.sample(range(end), 2))) for _ in range(count)]


def cut_sums(table: pa.Table, window: Window, *keys: str) -> Counter[Any]:
    """Return number and duration of the rows in a window of the whole, by some columns."""
    sums: Counter[Any] = Counter()
    for row in table.select([*keys, "t_ns", "dur_ns"]).to_pylist():
        part = cut(window, row["t_ns"], row["t_ns"] + row["dur_ns"])
        if part:
            key = tuple(row[key] for key in keys)
            sums[*key, "n"] += 1
            sums[*key, "ns"] += part[1] or 0
    return sums


def test_report_of_windows(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "_BATCH", 256)  # not all that follows is read
    source = Traceset(recorded)
    whole = model_tables(source)
    for window in windows(1, source.end_ns() or 0, 100):
        report = contention(source, window=window)
        reported: Counter[Any] = Counter()
        for row in report.threads:
            figures = row.figures
            sums = {"contended": (figures.waits, figures.wait_ns)} | {
                name: (n, figures.other_ns[name]) for name, n in figures.other_waits.items()
            }
            for name, (n, ns) in sums.items():
                reported[row.thread.tid, name, "n"] += n
                reported[row.thread.tid, name, "ns"] += ns
            reported[row.thread.tid, "n"] += figures.holds
            reported[row.thread.tid, "ns"] += figures.hold_ns
        expected = cut_sums(whole.waits, window, "tid", "class")
        assert +reported == +(expected + cut_sums(whole.holds, window, "tid")), window


def test_sql_of_windows(recorded: Path) -> None:
    traces = nptltrace.open(recorded)
    whole = model_tables(traces)
    for window in windows(2, traces.end_ns() or 0, 100):
        tables = all_tables(traces, scope=Scope(window))
        database = Database(tables)
        for name, columns in (("waits", "tid, class"), ("holds", "tid, mode")):
            query = f"select {columns}, count(*), sum(dur_ns) from {name} group by all"  # noqa: S608
            reported: Counter[Any] = Counter()
            for *key, n, ns in map(dict.values, database.query(query).to_pylist()):
                reported[*key, "n"], reported[*key, "ns"] = n, int(ns)
            expected = cut_sums(getattr(whole, name), window, *columns.split(", "))
            assert +reported == +expected, window
        database.close()


def test_states_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading after a window shows the state of a thread at the end of the window."""
    monkeypatch.setattr(prefetch, "_BATCH", 4)  # not all that follows is read
    made = Builder(tmp_path / "read.ptt")

    def reading(ms: int, slices: int, ran: int) -> Event:
        fields = {"slices": slices, "ran_ns": ran * MS, "ready_ns": 0}
        return Event(T0 + ms * MS, "SCHED_READING", 0, fields=fields)

    made.thread(1, [
        event(0, "THREAD_BEGIN", 0x1000, 0), reading(10, 1, 10), event(10, "MUTEX_TAKEN", LOCK, 5),
        # The thread runs up to here, sleeps for a time known only as a sum, and runs to the end.
        event(30, "MUTEX_FREE", LOCK, 5), reading(70, 2, 40), event(70, "MUTEX_TAKEN", LOCK, 5),
        # Without a reading before its next event, the thread runs up to that event.
        event(90, "MUTEX_FREE", LOCK, 5), event(120, "THREAD_END", 0x1000, 0),
    ])  # fmt: skip
    made.thread(2, [event(n, "SEM_POST", SEM, 9) for n in range(200)])
    made.processes = [
        {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
    ]
    traces = nptltrace.open(made.write())

    def states(window: Window) -> Counter[Any]:
        sums: Counter[Any] = Counter()
        for row in all_tables(traces, scope=Scope(window)).table("states").to_pylist():
            part = cut(chosen, row["t_ns"], row["t_ns"] + row["dur_ns"])
            sums[row["tid"], row["state"]] += (part and part[1]) or 0
        return +sums

    for ends in ((0, 20), (15, 25), (20, 50), (40, 60), (80, 110), (100, 130)):
        chosen = Window(*(ms * MS for ms in ends))
        assert states(chosen) == states(Window()), ends
    assert states(chosen)[1, "running"] == 20 * MS


def all_sums(model: libptttrack_sums.Model) -> Counter[Any]:
    """Return everything that windows add up."""
    sums: Counter[Any] = Counter()
    for name in ("objects", "sites", "threads", "pairs", "blames"):
        rows = model.table(name)
        for column in ("wait_ns", "held_ns", "kind_ns", "hold_ns", "caused_ns", "wasted"):
            if column in (rows.dtype.names or ()):
                for row, values in enumerate(rows[column].reshape(len(rows), -1).tolist()):
                    for place, value in enumerate(values):
                        sums[name, column, row, place] += value
    for row in model.table("threads")[1:]:
        if row["first_ns"] != libptttrack_sums.END:
            sums["life", int(row["tid"])] += int(row["last_ns"] - row["first_ns"])
    return +sums


@pytest.mark.parametrize("seed", range(3))
def test_adjacent_windows_add_up(
    seed: int, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "_BATCH", 256)
    source = Traceset(recorded)
    end = source.end_ns() or 0
    whole = all_sums(run_model(source, libptttrack_sums.PAIRS))
    choose = random.Random(seed)  # noqa: S311
    cuts = sorted(choose.sample(range(-100, end + 100), 8))
    total: Counter[Any] = Counter()
    for edges in pairwise([None, *cuts, None]):
        total += all_sums(run_model(source, libptttrack_sums.PAIRS, window=Window(*edges)))
    # Blames are numbered in the order of their first use, which a window changes.
    for table in ("blames", "pairs", "sites"):
        assert sum(n for key, n in total.items() if key[0] == table) == sum(
            n for key, n in whole.items() if key[0] == table
        )
    assert {k: n for k, n in total.items() if k[0] != "blames"} == {
        k: n for k, n in whole.items() if k[0] != "blames"
    }


# ---- traces cut out of other traces ----


def cut_of(source: Traceset, begin: int, path: Path) -> Traceset:
    cursor = libpttread.Cursor(source.reader)
    cursor.seek_key(source.reader.key_of_time(begin))
    write_cut(source, path, Part(cursor.place(), begin_ns=begin))
    return Traceset(path)


# The last thread at a barrier that is just opening is not known in a part.
UNKNOWN = ("barrier",)


def sums_of(source: Traceset, window: Window | None = None) -> Counter[Any]:
    """Return the sums of waits, holds and lives by thread, without some kinds of objects."""
    tables = model_tables(source, window=window)
    sums: Counter[Any] = Counter()
    for row in tables.waits.to_pylist() + tables.holds.to_pylist():
        if row.get("kind") not in UNKNOWN:
            key = (row["tid"], row.get("kind"), row.get("class"), row["mode"])
            sums[*key, "n"] += 1
            sums[*key, "ns"] += row["dur_ns"]
    for row in tables.threads.to_pylist():
        sums[row["tid"], "life"] += row["last_ns"] - row["start_ns"]
    return sums


@pytest.mark.parametrize("options", [("-l", "2"), ("-l", "3"), ("--handler", "shared")])
def test_a_cut_begins_with_the_true_state(
    options: tuple[str, ...], program: Callable[[str], Path], record: Recorder, tmp_path: Path
) -> None:
    source = Traceset(record(program("mix"), "6", "100", options=options))
    end = source.end_ns() or 0
    for number, window in enumerate(windows(4, end, 5)):
        begin = window.begin_ns or 0
        whole = sums_of(source, Window(begin, None))
        part = cut_of(source, begin, tmp_path / f"{number}.ptt")
        assert sums_of(part) == whole, window
        # On a busy machine, holders may sleep for long.
        assert [finding for finding in find(part).findings if finding.severity == "error"] == []
        # A cut can be cut again.
        later = window.end_ns or 0
        again = cut_of(part, later, tmp_path / f"{number}-again.ptt")
        whole = sums_of(source, Window(later, None))
        assert sums_of(again) == whole, window


def test_a_cut_inside_of_waits(convoy: Path, tmp_path: Path, ptt: Ptt) -> None:
    part = tmp_path / "part.ptt"
    message = ptt("cut", "--from", "40ms", "--to", "90ms", "-o", part, convoy).stderr
    assert message.startswith("ptt: wrote 0 events")
    reported = json.loads(ptt("report", "--format", "json", part).stdout)
    assert (reported["waits"], reported["wait_ns"], reported["hold_ns"]) == (3, 150 * MS, 50 * MS)
    assert [b["tid"] for b in reported["objects"][0]["blamed"]] == [1]
    assert {t["tid"] for t in reported["threads"]} == {1, *WAITERS, 5}
    late = tmp_path / "late.ptt"
    ptt("cut", "--from", "95ms", "-o", late, convoy)
    reported = json.loads(ptt("report", "--format", "json", late).stdout)
    assert (reported["waits"], reported["wait_ns"]) == (3, (5 + 15 + 25) * MS)
    # The events before the cut are not among its events.
    assert json.loads(ptt("stat", "--format", "json", late).stdout)["events"] == 12
    assert ptt("view", "--format", "jsonl", late).stdout.count("\n") == 12
    assert ptt("check", late, status=None).returncode == 0
    (late / "info" / "before" / "metadata").write_text("damaged")
    ptt("report", late)


def test_a_process_without_events_in_a_cut_keeps_its_locks(tmp_path: Path) -> None:
    made = Builder(tmp_path / "two.ptt")
    made.thread(1, [
        event(0, "THREAD_BEGIN", 0x1000, 0), event(5, "MUTEX_TAKEN", LOCK, 5),
        event(10, "MUTEX_FREE", LOCK, 5), event(15, "MUTEX_WAIT", LOCK, 5, owner=0),
        # A lock taken after a wait does not show whether releases are recorded.
        event(20, "MUTEX_TAKEN", LOCK, 5, "WAITED", result=0, wait_ns=5 * MS),
        event(100, "MUTEX_FREE", LOCK, 6), event(200, "THREAD_END", 0x1000, 0),
    ])  # fmt: skip
    made.thread(2, [
        event(50, "MUTEX_TAKEN", OTHER, 7), event(55, "MUTEX_FREE", OTHER, 8),
        event(60, "MUTEX_TAKEN", OTHER, 7), event(200, "THREAD_END", 0x2000, 0),
    ], process=1)  # fmt: skip
    made.processes = [
        {"process": {"index": n, "pid": 100 + n, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}}
        for n in range(2)
    ]
    source = Traceset(made.write())
    begin, end = 40 * MS, 80 * MS
    cursor = libpttread.Cursor(source.reader)
    cursor.seek_key(source.reader.key_of_time(begin))
    first = cursor.place()
    cursor.seek_key(source.reader.key_of_time(end))
    path = tmp_path / "part.ptt"
    write_cut(source, path, Part(first, cursor.place(), begin_ns=begin, end_ns=end))
    part = Traceset(path)
    assert sums_of(part) == sums_of(source, Window(begin, end))
    held = model_tables(part).holds.to_pylist()
    assert [(hold["tid"], hold["dur_ns"] // MS) for hold in held] == [(2, 5), (1, 40), (2, 20)]


def test_a_thread_that_has_ended_lives_in_no_cut(tmp_path: Path) -> None:
    """The thread may have held a lock that another thread still waits for."""
    made = Builder(tmp_path / "ended.ptt")
    made.thread(3, [
        event(0, "THREAD_BEGIN", 0x3000, 0), event(20, "MUTEX_TAKEN", LOCK, 5),
        event(30, "MUTEX_FREE", LOCK, 6), event(35, "THREAD_END", 0x3000, 0),
    ])  # fmt: skip
    made.thread(2, [
        event(25, "MUTEX_WAIT", LOCK, 7, owner=3),
        event(60, "MUTEX_TAKEN", LOCK, 7, "WAITED", result=0, wait_ns=35 * MS),
    ])  # fmt: skip
    source = Traceset(made.write())
    part = model_tables(cut_of(source, 50 * MS, tmp_path / "part.ptt"))
    lived = [row["tid"] for row in part.threads.to_pylist() if row["start_ns"] is not None]
    assert lived == [2]
    (wait,) = part.waits.to_pylist()
    assert (wait["dur_ns"], wait["held_ns"]) == (10 * MS, 0)


# Events of a trace, the window of a cut, and by thread the class and the waker of its wait.
WOKEN_BEFORE = {
    "a post before the wait, by the holder of a unit": (
        {1: [event(0, "SEM_TAKEN", SEM, 5), event(20, "SEM_POST", SEM, 6)],
         2: [Event(T0 + 20 * MS + MS // 2, "SEM_WAIT", SEM, 7),
             event(30, "SEM_TAKEN", SEM, 7, "WAITED", result=0, wait_ns=9 * MS)]},
        Window(20 * MS + 1, None), {2: ("unknown", 1)},
    ),
    "a post before the wait, by a thread without a unit": (
        {1: [event(20, "SEM_POST", SEM, 6)],
         3: [event(0, "SEM_TAKEN", SEM, 5)],
         2: [Event(T0 + 20 * MS + MS // 2, "SEM_WAIT", SEM, 7),
             event(30, "SEM_TAKEN", SEM, 7, "WAITED", result=0, wait_ns=9 * MS)]},
        Window(20 * MS + 1, None), {2: ("idle", 1)},
    ),
    "an unused post, by a thread that has taken another unit since": (
        {1: [event(0, "SEM_TAKEN", SEM, 5), event(20, "SEM_POST", SEM, 6),
             event(25, "SEM_TAKEN", SEM, 5)],
         2: [event(10, "SEM_WAIT", SEM, 7),
             event(50, "SEM_TAKEN", SEM, 7, "WAITED", result=0, wait_ns=40 * MS)]},
        Window(30 * MS, None), {2: ("unknown", 1)},
    ),
    "a wake-up of two threads; one thread has gone on": (
        {1: [event(0, "FUTEX_WAIT_IN", LOCK, 5, op=0, expected=0, timeout_ns=-1),
             event(5, "FUTEX_WAIT_OUT", LOCK, 5, result=0, wait_ns=5 * MS),
             event(20, "FUTEX_WAKE", LOCK, 6, op=1, count=2)],
         2: [event(10, "FUTEX_WAIT_IN", LOCK, 7, op=0, expected=0, timeout_ns=-1),
             event(22, "FUTEX_WAIT_OUT", LOCK, 7, result=0, wait_ns=12 * MS)],
         3: [event(11, "FUTEX_WAIT_IN", LOCK, 7, op=0, expected=0, timeout_ns=-1),
             event(50, "FUTEX_WAIT_OUT", LOCK, 7, result=0, wait_ns=39 * MS)],
         4: [event(12, "FUTEX_WAIT_IN", LOCK, 7, op=0, expected=0, timeout_ns=-1),
             event(70, "FUTEX_WAIT_OUT", LOCK, 7, result=0, wait_ns=58 * MS)],
         5: [event(60, "FUTEX_WAKE", LOCK, 8, op=1, count=1)]},
        Window(30 * MS, None), {3: ("unknown", 1), 4: ("unknown", 5)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WOKEN_BEFORE)
def test_wake_ups_before_a_cut(name: str, tmp_path: Path) -> None:
    """A cut knows the wake-ups before it, and their counts, as the whole trace does."""
    threads, window, waits = WOKEN_BEFORE[name]
    made = Builder(tmp_path / "whole.ptt")
    for tid, events in threads.items():
        made.thread(tid, events)
    whole = Traceset(made.write())
    part = cut_of(whole, window.begin_ns or 0, tmp_path / "part.ptt")
    again = cut_of(part, (window.begin_ns or 0) + 1, tmp_path / "again.ptt")
    for tables in (model_tables(whole, window=window), model_tables(part), model_tables(again)):
        rows = tables.waits.to_pylist()
        assert {row["tid"]: (row["class"], row["waker_tid"]) for row in rows} == waits


def test_the_viewer_shows_a_cut_from_its_beginning(convoy: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.ptt"
    cut_of(Traceset(convoy), 95 * MS, part)
    viewer = Viewer([part])
    viewer.start()
    viewer.wait_ready()
    rows = {row["tid"]: row for row in ask(viewer, "rows", by="thread", limit=99).to_pylist()}
    viewer.close()
    assert {tid: rows[tid]["wait_ns"] for tid in WAITERS} == {2: 5 * MS, 3: 15 * MS, 4: 25 * MS}


@pytest.mark.parametrize("name", ["cancel", "futex", "rwlock", "sem"])
def test_cuts_of_other_programs(
    name: str, program: Callable[[str], Path], record: Recorder, tmp_path: Path
) -> None:
    source = Traceset(record(program(name), options=("-l", "2"), status=None))
    for number, window in enumerate(windows(7, source.end_ns() or 0, 6)):
        begin = window.begin_ns or 0
        part = cut_of(source, begin, tmp_path / f"{number}.ptt")
        assert sums_of(part) == sums_of(source, Window(begin, None)), window
