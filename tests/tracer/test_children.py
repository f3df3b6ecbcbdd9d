"""fork, vfork, clone, exec, spawn: children are traced as themselves, unnoticed by the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.tracer.counted import Runner

EXECS = [
    "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "execveat", "fexecve",
    "syscall_execve",
]  # fmt: skip
LOCK = ["MUTEX_TAKEN", "MUTEX_FREE"]


@pytest.mark.parametrize("how", ["fork", "_Fork", "clone", "syscall_clone"])
@pytest.mark.parametrize("level", [0, 2])
def test_fork(how: str, level: int, traced: Runner, program: Callable[[str], Path]) -> None:
    plain = traced.plain(program("children"), how, "20")
    run = traced(program("children"), how, "20", level=level)
    assert (run.stdout, run.stderr, run.status) == (plain.stdout, plain.stderr, 0)
    parent, *children = run.processes
    assert len(children) == 20
    if level == 0:
        assert not any(process.events for process in run.processes)
        return
    forks = parent.of("PROCESS_FORK")
    assert [event.fields["child"] for event in forks] == [child.pid for child in children]
    kind = {"fork": 0, "_Fork": 1, "clone": 3, "syscall_clone": 4}[how]
    assert {event.fields["kind"] for event in forks} == {kind}
    # functions of pthread_atfork() run where there are any, and in the child's own name
    before = ["RWLOCK_TAKEN_WRITE", "RWLOCK_FREE"] if how == "fork" else []
    after = ["PROCESS_EXIT"] if how == "fork" else []
    for child in children:
        assert [event.name for event in child.events] == ["PROCESS_START", *before, *LOCK, *after]
        assert {event.tid for event in child.events} == {child.pid}
        assert child.events[0].fields["ppid"] == parent.pid
    assert all(event.tid != child.pid for event in parent.events for child in children)


@pytest.mark.parametrize("how", EXECS)
def test_exec(how: str, traced: Runner, program: Callable[[str], Path]) -> None:
    plain = traced.plain(program("children"), how)
    run = traced(program("children"), how)
    assert run.stderr == plain.stderr
    if how in ("execv", "execvp", "execl", "execlp"):  # these pass on the test's own environment
        assert run.stdout.splitlines()[-1] == plain.stdout.splitlines()[-1]
    else:
        assert run.stdout == plain.stdout
    _parent, child, executed = run.processes
    assert child.events[-1].name == "PROCESS_EXEC"
    assert executed.pid == child.pid
    assert executed.names()["MUTEX_TAKEN"] == 1


def test_failed_exec(traced: Runner, program: Callable[[str], Path]) -> None:
    plain = traced.plain(program("children"), "failed")
    run = traced(program("children"), "failed", level=2)
    assert (run.stdout, run.status) == (plain.stdout, plain.status)
    assert run.only.domain("") == [
        "PROCESS_START", "PROCESS_EXEC", "PROCESS_EXEC_FAILED", *LOCK, "PROCESS_EXIT",
    ]  # fmt: skip


def test_vfork(traced: Runner, program: Callable[[str], Path]) -> None:
    plain = traced.plain(program("children"), "vfork", "5")
    run = traced(program("children"), "vfork", "5")
    assert (run.stdout, run.stderr, run.status) == (plain.stdout, plain.stderr, 0)
    parent, *children = run.processes
    assert len(children) == 5
    forks = parent.of("PROCESS_FORK")
    # one event for each, though each tries twice; and the parent is not said to execute anything
    assert [event.fields["child"] for event in forks] == [child.pid for child in children]
    assert parent.names()["PROCESS_EXEC"] == 0
    assert all(child.names()["MUTEX_TAKEN"] == 1 for child in children)


@pytest.mark.parametrize("how", ["posix_spawn", "posix_spawnp"])
def test_spawn(how: str, traced: Runner, program: Callable[[str], Path]) -> None:
    run = traced(program("children"), how)
    assert run.status == 0
    parent, child = run.processes
    (spawned,) = parent.of("PROCESS_SPAWN")
    assert spawned.fields["child"] == child.pid
    assert child.names()["MUTEX_TAKEN"] == 1
    assert run.stdout.endswith("done\n")


@pytest.mark.parametrize("how", ["fork", "clone", "vfork", "posix_spawn", "execve", "execv"])
def test_no_children(how: str, traced: Runner, program: Callable[[str], Path]) -> None:
    run = traced(program("children"), how, tracing_arg="children=0")
    assert run.status == 0
    assert run.only.names()["MUTEX_TAKEN"] > 0
    assert not any(event.tid != event.object and event.tid == 0 for event in run.only.events)


def test_no_children_follows_exec_of_its_own(traced: Runner) -> None:
    run = traced("/bin/sh", "-c", "exec /bin/sh -c 'exec /bin/true'", tracing_arg="children=0")
    assert len(run.processes) == 3
    run = traced("/bin/sh", "-c", "/bin/true; echo $PTHREAD_NPTL_TRACE", tracing_arg="children=0")
    assert len(run.processes) == 1
    assert run.stdout == "\n"


def test_shell_pipeline_and_system(traced: Runner) -> None:
    run = traced("/bin/sh", "-c", "echo 1 | cat; exec /bin/true", level=2)
    assert run.stdout == "1\n"
    executed = [p for p in run.processes if p.names()["PROCESS_EXEC"]]
    assert len(executed) == 2
