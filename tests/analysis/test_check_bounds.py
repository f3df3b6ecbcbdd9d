"""`ptt check` with many held locks, holds, threads and processes."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace._binding import libptttrack_sums
from nptltrace._binding.libptttrack_facts import Check
from nptltrace.analysis.answers import all_tables
from nptltrace.analysis.findings import find
from nptltrace.analysis.model import (
    Window,
    event_buffers,
    model_batches,
    model_tables,
    run_model,
)
from nptltrace.api import Traceset
from nptltrace.trace.thread_naming import ThreadNaming
from tests.analysis.story import HEAP, MAIN, A, B, C, Story, found, two

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

EDEADLK, EPERM = 35, 1
LOCK_IN, UNLOCK_IN = 20, 28
MANY = 0x405000
PAGE = 0x1000
PIECES = 0x10000000


def crossing(others: int, *, gate: bool = False) -> Story:
    """Two threads take two locks in both orders, while each holds many others."""
    story = two()
    for tid, first, second in ((1, A, B), (2, B, A)):
        held = [MANY + 64 * (1000 * tid + n) for n in range(others)]
        if gate:
            held.insert(others // 2, C)
        for lock in (*held, first, second):
            story.lock(tid, lock)
        for lock in (second, first, *held):
            story.unlock(tid, lock)
    return story.exit()


@pytest.mark.parametrize("others", [0, 7, 8, 9, 40, 62])
def test_an_inversion_under_many_locks(tmp_path: Path, others: int) -> None:
    (only,) = crossing(others).findings(tmp_path)
    assert only.kind == "lock-order-inversion"
    assert set(only.objects) == {A, B}


@pytest.mark.parametrize("others", [0, 8, 9, 40])
def test_a_gate_among_many_locks(tmp_path: Path, others: int) -> None:
    assert found(crossing(others, gate=True), tmp_path) == []


def test_locks_beyond_the_limit_are_not_judged(tmp_path: Path, ptt: Ptt) -> None:
    trace = crossing(100).write_to(tmp_path / "made.ptt")
    assert find(Traceset(trace)).crowded > 0
    out = ptt("check", trace)
    assert "not judged" in out.stderr
    assert "more than 64" in out.stderr


def test_the_longest_hold_is_reported(tmp_path: Path) -> None:
    story = Story().create(1)
    for ms in (23, 180, 80):
        story.lock(MAIN, A, site=7).wait(1, A, MAIN).sleep(ms * 1_000_000).unlock(MAIN, A)
        story.waited(1, A).unlock(1, A)
    (only,) = find(
        Traceset(story.ended_and_joined(1).exit().write_to(tmp_path / "made.ptt")),
        long_hold_ns=10**7,
    ).findings
    assert "180 ms" in only.message
    assert only.count == 3
    took, released = only.events
    assert released.ts_ns - took.ts_ns >= 180_000_000
    assert only.ts_ns == released.ts_ns


@pytest.mark.parametrize(
    ("routine", "error", "kind"),
    [(LOCK_IN, EDEADLK, "self-deadlock"), (UNLOCK_IN, EPERM, "unlock-not-owner")],
)
def test_a_refused_call_is_a_warning(tmp_path: Path, routine: int, error: int, kind: str) -> None:
    tid = 1 if routine == LOCK_IN else 2
    story = two().lock(1, A).refused(tid, A, routine, error).unlock(1, A).exit()
    (only,) = story.findings(tmp_path)
    assert (only.kind, only.severity) == (kind, "warning")


def all_at_once(count: int) -> Story:
    """A thread takes many locks, and releases them in the same order."""
    story = Story()
    for n in range(count):
        story.lock(MAIN, MANY + 64 * n)
    for n in range(count):
        story.unlock(MAIN, MANY + 64 * n)
    return story.exit()


def test_edges_grow_with_the_locks(tmp_path: Path) -> None:
    rows = []
    for count in (500, 1000):
        trace = all_at_once(count).write_to(tmp_path / str(count))
        tables = dict(model_batches(Traceset(trace), ()))
        rows.append(tables["edges"].num_rows)
    assert rows[1] <= 2.2 * rows[0]


def test_edges_are_made_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Watched(libptttrack_sums.Model):
        def __init__(self, flags: int = 0) -> None:
            made.append(flags)
            super().__init__(flags)

    monkeypatch.setattr(libptttrack_sums, "Model", Watched)
    tables = all_tables(Traceset(all_at_once(10).write_to(tmp_path / "made.ptt")))
    assert tables.table("waits").num_rows == 0
    assert tables.table("holds").num_rows == 10
    assert [flags & libptttrack_sums.EDGES for flags in made] == [0]
    assert tables.table("edges").num_rows == 45
    assert len(made) == 2


def test_names_of_a_long_chain_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread has the name of its creator, the thread before it; the check asks for it once."""
    count, asked = 3000, 0
    story = Story()
    creator = MAIN
    for tid in range(1000, 1000 + count):
        story.create(tid, by=creator)
        creator = tid
    source = Traceset(story.exit().write_to(tmp_path / "made.ptt"))
    source.names.learn()
    own = ThreadNaming._own_name

    def counted(self: ThreadNaming, thread: int, turn: int) -> str:
        nonlocal asked
        asked += 1
        return own(self, thread, turn)

    monkeypatch.setattr(ThreadNaming, "_own_name", counted)
    names = {source.names.of(n) for n in range(len(source.thread_ids))}
    assert len(names) == 1
    assert asked <= count + 1


def test_processes_are_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check lists processes once, however many the program forked."""
    story: Any = Story()
    for n in range(200):
        story.processes[200 + n] = {"index": 1 + n, "ppid": MAIN, "parent": 0}
        story.do(200 + n, "PROCESS_START", 200 + n, pid=200 + n)
    source = Traceset(story.exit().write_to(tmp_path / "made.ptt"))
    lists, reader = 0, type(source.reader)
    real = reader.processes

    def counted(self: Any, *args: Any) -> Any:
        nonlocal lists
        lists += not args
        return real(self, *args)

    monkeypatch.setattr(reader, "processes", counted)
    assert find(source).findings == []
    assert lists < 10


# ---- growth ----


def hung_processes(n: int) -> Callable[[], object]:
    """Make processes of one parent; no thread goes on in any of them."""
    check = Check(10**9, 10**6)
    for number in range(1, n):
        check.child(number, 0)
        check.share(number, 0x1000, 0x2000, number // 2, 0)
    return lambda: check.finish([], 0)


def followed(story: Story, path: Path) -> Callable[[], object]:
    """Return a function that runs the checker over the events of a program."""
    source = Traceset(story.write_to(path))

    def run() -> None:
        check = Check(10**9, 10**6)
        for number, (process, tid) in enumerate(source.reader.threads()):
            check.thread(number, process, tid)
        for buffer in event_buffers(source, Window()):
            check.feed(buffer)
        check.finish([], 0)

    return run


def waits_from_the_end(n: int) -> Story:
    """Each thread waits for a lock that the next thread holds; the last threads begin."""
    story = Story()
    for tid in range(1, n + 1):
        story.lock(tid, MANY + 64 * tid)
    for tid in range(n - 1, 0, -1):
        story.wait(tid, MANY + 64 * (tid + 1), tid + 1)
    return story


def piece(start: int, end: int, file: int, offset: int = 0) -> dict[str, str]:
    """Return memory that a process has mapped from a file."""
    place = {"start": hex(start), "end": hex(end), "offset": hex(offset)}
    return {**place, "file": f"0:1:{file + 1}"}


def mapped(n: int) -> Story:
    """Two processes have n pieces of memory in common, with a lock in each piece."""
    story, places = Story(), [HEAP + 0x10000 * number for number in range(n)]
    story.processes[200] = {"index": 1, "ppid": MAIN}
    for pid in (MAIN, 200):
        story.shared[pid] = [piece(place, place + PAGE, n) for n, place in enumerate(places)]
    for place in places:
        story.lock(MAIN, place + 8).unlock(MAIN, place + 8)
    return story


def processor_time(run: Callable[[], object]) -> float:
    """Return the time of this thread in seconds."""
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


def test_time_for_hung_processes_is_linear() -> None:
    """If each were compared with each, four times as many would take 16 times as long."""
    fewer, more = (min(processor_time(hung_processes(n)) for _ in range(3)) for n in (1000, 4000))
    assert more < 9 * fewer + 0.05


def test_time_for_threads_that_wait_is_linear(tmp_path: Path) -> None:
    """Each new wait costs the same, however many waits there are; also when all is over."""
    runs = [followed(waits_from_the_end(n), tmp_path / str(n)) for n in (400, 1600)]
    fewer, more = (min(processor_time(run) for _ in range(5)) for run in runs)
    assert more < 9 * fewer + 0.002


def test_time_for_locks_held_at_once_is_linear(tmp_path: Path) -> None:
    """Each new lock costs the same, however many locks the thread holds."""
    runs = [followed(all_at_once(n), tmp_path / str(n)) for n in (250, 1000)]
    fewer, more = (min(processor_time(run) for _ in range(5)) for run in runs)
    assert more < 9 * fewer + 0.005


def test_time_for_memory_in_common_is_linear(tmp_path: Path) -> None:
    sources = [Traceset(mapped(n).write_to(tmp_path / str(n))) for n in (1000, 16000)]
    fewer, more = (
        min(processor_time(partial(run_model, source, 0)) for _ in range(3)) for source in sources
    )
    assert more < 40 * fewer + 0.02


@pytest.mark.parametrize("seed", range(5))
def test_an_address_belongs_to_the_last_mapping(seed: int, tmp_path: Path) -> None:
    """Pieces lie over one another; another process has mapped each file at another place."""
    choose = random.Random(seed)  # noqa: S311
    story, pages, files = Story(), 64, 12
    story.processes[200] = {"index": 1, "ppid": MAIN}
    last: list[int | None] = [None] * pages
    story.shared = {MAIN: [], 200: []}
    for file in range(files):
        start, end = sorted(choose.sample(range(pages + 1), 2))
        last[start:end] = [file] * (end - start)
        story.shared[200].append(
            piece(PIECES + start * PAGE, PIECES + end * PAGE, file, start * PAGE)
        )
        place = HEAP + file * pages * PAGE
        story.shared[MAIN].append(piece(place, place + pages * PAGE, file))
    for page, owner in enumerate(last):
        if owner is not None:
            here = HEAP + (owner * pages + page) * PAGE + 8
            story.lock(MAIN, here).unlock(MAIN, here)
            there = PIECES + page * PAGE + 8
            story.do(200, "MUTEX_TAKEN", there, pid=200).do(200, "MUTEX_FREE", there, pid=200)
    objects = model_tables(Traceset(story.write_to(tmp_path / "made.ptt"))).objects.to_pylist()
    assert [row["threads"] for row in objects] == [2] * sum(owner is not None for owner in last)
