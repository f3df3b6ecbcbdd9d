"""The recorder's work for a process does not depend on the number of other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from nptltrace._binding.libpttcollect import Stats
from nptltrace.recording.files.session import SessionDir
from nptltrace.recording.processes import ProcessLog, ProcessWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

LIVE, NO_PARENT = 2, 0xFFFFFFFF


class Table:
    """A collector with a process table and nothing else."""

    clock, start = 0, (1, 0)

    def __init__(self) -> None:
        self.news: list[Any] = []
        self.pids: list[int] = []
        self.announced: list[tuple[int, int, int, int | None]] = []
        self.gone: list[int] = []

    def add(self, number: int, **damage: int) -> int:
        index = len(self.pids)
        self.pids.append(number)
        said = {"image": index, "state": LIVE, "pid": number, "ppid": 1, "parent": NO_PARENT,
                "start": 1, "pid_namespace": 0}  # fmt: skip
        entry = SimpleNamespace(**said | damage)
        self.news.append((index, entry))
        return index

    def processes(self) -> list[Any]:
        news, self.news = self.news, []
        return news

    def process_pid(self, index: int) -> int:
        return self.pids[index]

    def process_gone(self, index: int) -> None:
        self.gone.append(index)

    def sites(self) -> list[tuple[int, int, int, int | None]]:
        return self.announced

    def sites_taken(self, count: int) -> None:
        del self.announced[:count]


class Watched:
    """Waiting processes, and the watch that knows them."""

    def __init__(self, directory: Path, stack: ExitStack, count: int) -> None:
        self.table = Table()
        self._stack = stack
        path = directory / f"processes-{count}.jsonl"
        log = ProcessLog(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
        session = SessionDir(directory)
        self.watch = ProcessWatch(cast("Any", self.table), session, log, lambda clock: clock)
        stack.callback(self.watch.close)
        self.children = [self.start() for _ in range(count)]
        self.watch.step()

    def start(self) -> subprocess.Popen[bytes]:
        # A process that answers has loaded its libraries: each process costs the same to read.
        pipe = subprocess.PIPE
        child = subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, bufsize=0)
        self._stack.enter_context(child)
        self._stack.callback(child.kill)
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"?")
        assert child.stdout.read(1) == b"?"
        self.table.add(child.pid)
        return child

    def end(self) -> None:
        child = self.children.pop()
        child.kill()
        child.wait()


def instructions(call: Callable[[], object]) -> int:
    """Return the number of Python bytecode instructions of a call."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.fixture(name="few_and_many")
def _few_and_many(tmp_path: Path) -> Iterator[list[Watched]]:
    with ExitStack() as stack:
        yield [Watched(tmp_path, stack, count) for count in (4, 40)]


def test_a_look_without_news_costs_the_same_for_many_processes(few_and_many: list[Watched]) -> None:
    few, many = (instructions(watched.watch.step) for watched in few_and_many)
    assert many == few


def test_a_new_process_costs_the_same_among_many(few_and_many: list[Watched]) -> None:
    costs = []
    for watched in few_and_many:
        watched.start()
        costs.append(instructions(watched.watch.step))
        assert watched.watch.seen == len(watched.table.pids)
    few, many = costs
    assert many < 1.2 * few


def test_a_new_call_site_costs_the_same_among_many(
    few_and_many: list[Watched],
) -> None:
    costs = []
    for watched in few_and_many:
        watched.table.announced.append((2, 1, 0x1000, None))
        watched.watch.sites()
        costs.append(instructions(watched.watch.step))
    few, many = costs
    assert many < 1.2 * few


def test_an_ended_process_costs_the_same_among_many(few_and_many: list[Watched]) -> None:
    costs = []
    for watched in few_and_many:
        watched.end()
        costs.append(instructions(watched.watch.step))
        assert watched.table.gone == [len(watched.children)]
        assert len(watched.watch.live) == len(watched.children)
    few, many = costs
    assert many < 1.2 * few


def test_damaged_entries_are_passed_over(tmp_path: Path) -> None:
    """Such entries are no processes, and the recorder waits for no end of them."""
    with ExitStack() as stack:
        watched = Watched(tmp_path, stack, 2)
        for damage in (
            {"start": 0}, {"start": 2**63}, {"image": 0}, {"pid": 0}, {"pid": 2**31}, {"state": 77},
            {"state": 1, "start": 2**63},
        ):  # fmt: skip
            watched.table.add(1, **damage)
        for _ in range(2):
            watched.watch.step()
            watched.watch.give_up()
        assert (watched.watch.seen, len(watched.watch.damaged)) == (2, 7)
        assert not watched.watch.busy()


def test_impossible_counts_are_not_believed() -> None:
    stats = Stats(
        lost_full=2**62, lost_closed=3, overwritten=2**60, stopped=1, lost_processes=2**31,
        unjoined=2,
    )  # fmt: skip
    stats.distrust(0, 10**9)
    assert (stats.lost, stats.overwritten, stats.stopped, stats.lost_processes) == (3, 0, 0, 0)
    assert (stats.untrue, stats.unjoined) == (True, 0)
    true = Stats(lost_full=10**6, unjoined=2)
    true.distrust(0, 10**9)
    assert (true.lost, true.unjoined, true.untrue) == (10**6, 2, False)
    alone = Stats(unjoined=2**32 - 8)
    alone.distrust(0, 10**9)
    assert (alone.unjoined, alone.untrue) == (0, True)
