"""The critical path goes into a child if its parent waited for the end of the child."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

import nptltrace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Recorder

SLEPT = 100_000_000


class Run:
    """A trace of a parent and its child, and the parts of the path that each has."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace
        self.traceset = nptltrace.open(trace)
        self.path = self.traceset.report()["critical_path"]
        (reaped,) = self.traceset.sql(
            "select tid, child, ts_ns, wait_ns from events where event = 'PROCESS_REAPED'"
        ).to_pylist()
        self.parent, self.child = reaped["tid"], reaped["child"]
        self.reaped_ns, self.wait_ns = reaped["ts_ns"], reaped["wait_ns"]

    def spent(self, tid: int, what: Literal["run_ns", "open_ns"]) -> int:
        return sum(part[what] for part in self.path["threads"] if part["tid"] == tid)

    def lived(self, tid: int) -> tuple[int, int]:
        """Return when a thread ended and how long it lived."""
        rows = self.traceset.table("threads").to_pylist()
        (end,) = (
            (row["last_ns"], row["last_ns"] - row["start_ns"]) for row in rows if row["tid"] == tid
        )
        return end


@pytest.fixture
def run(program: Callable[[str], Path], record: Recorder) -> Callable[..., Run]:
    """Records the program, and returns its run."""

    def run(*how: str) -> Run:
        return Run(record(program("families"), *how))

    return run


@pytest.mark.parametrize("how", ["wait", "waitpid", "waitid", "wait3", "wait4", "stopped"])
@pytest.mark.parametrize("child", ["exit", "at-once"])
def test_the_path_goes_through_the_child(how: str, child: str, run: Callable[..., Run]) -> None:
    seen = run(how, child)
    assert seen.spent(seen.child, "run_ns") >= SLEPT
    assert seen.spent(seen.parent, "open_ns") == 0
    # The time of the wait belongs to the child, except for the time after the child's end.
    assert seen.spent(seen.parent, "run_ns") <= seen.lived(seen.parent)[1] - SLEPT


def test_a_child_that_was_killed_in_a_wait(run: Callable[..., Run]) -> None:
    seen = run("waitpid", "killed")
    assert seen.spent(seen.child, "open_ns") >= SLEPT
    assert seen.spent(seen.parent, "open_ns") == 0
    assert seen.lived(seen.child)[0] <= seen.reaped_ns


def test_a_child_that_became_another_program(run: Callable[..., Run]) -> None:
    seen = run("waitpid", "program", "/bin/sleep", "0.1")
    assert seen.spent(seen.child, "run_ns") >= SLEPT
    names = [part["name"] for part in seen.path["threads"] if part["tid"] == seen.child]
    assert sorted(names) == ["families", "sleep"]


def test_a_program_that_is_not_traced(
    run: Callable[..., Run], compile_c: Callable[..., Path]
) -> None:
    program = compile_c(
        "#include <unistd.h>\nint main(void) { usleep(100000); return 0; }", "-static"
    )
    seen = run("wait4", "program", str(program))
    assert seen.spent(seen.parent, "open_ns") >= SLEPT // 2
    assert seen.spent(seen.child, "run_ns") == 0


def test_a_poll_is_no_wait(run: Callable[..., Run]) -> None:
    seen = run("polled", "exit")
    assert [part["tid"] for part in seen.path["threads"]] == [seen.parent]


def test_the_path_in_a_window(run: Callable[..., Run]) -> None:
    """The path of a window that begins while the parent waits begins in the child."""
    seen = run("wait", "exit")
    middle = seen.reaped_ns - seen.wait_ns // 2
    path = seen.traceset.report(start_ns=middle)["critical_path"]
    assert (path["start_ns"], path["end_ns"]) == (middle, seen.path["end_ns"])
    part = {row["tid"]: row["run_ns"] for row in path["threads"]}
    assert part[seen.child] >= SLEPT // 4


def test_a_script_of_a_shell(record: Recorder) -> None:
    trace = record("sh", "-c", "sleep 0.1; (sleep 0.1; true); true")
    path = nptltrace.open(trace).report()["critical_path"]
    assert sum(part["run_ns"] for part in path["threads"] if part["name"] == "sleep") >= 2 * SLEPT


def test_the_path_goes_through_all_of_many_children(record: Recorder) -> None:
    # Known process ids stay known while more of them come.
    trace = record("/bin/sh", "-c", "for one in $(seq 200); do sleep 0.002; done")
    with nptltrace.open(trace) as traceset:
        path = traceset.report()["critical_path"]
    names = [part["name"] for part in path["threads"]]
    # On a busy machine a child may end before the shell waits for it.
    assert names.count("sleep") > 150
