"""Hooks and thread library report the same actions of each thread, in the same order."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.runs import routines, run_all
from tests.nptl.agreement import compare
from tests.support import ROOT, Compiler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Ptt, Recorder

PROGRAMS, CORRECT = ROOT / "tests" / "programs", ROOT / "tests" / "corpus" / "correct"
# Source, arguments.
CASES: list[tuple[Path, tuple[str, ...]]] = [
    (PROGRAMS / "barrier.c", ()),
    (PROGRAMS / "c11.c", ()),
    (PROGRAMS / "cancel.c", ()),
    (PROGRAMS / "contention.c", ()),
    (PROGRAMS / "lock_count.c", ("3", "50")),
    (PROGRAMS / "mix.c", ("4", "100")),
    (PROGRAMS / "rwlock.c", ()),
    (PROGRAMS / "sem.c", ()),
    (CORRECT / "barrier_reuse.c", ()),
    (CORRECT / "bounded_queue.c", ()),
    (CORRECT / "cancelled_waits.c", ()),
    (CORRECT / "destroyed_after_broadcast.c", ()),
    (CORRECT / "errors_expected.c", ()),
    (CORRECT / "hand_over_hand.c", ()),
    (CORRECT / "joined_in_all_ways.c", ()),
    (CORRECT / "many_threads.c", ()),
    (CORRECT / "recursive.c", ()),
    (CORRECT / "recursive_cond.c", ()),
    (CORRECT / "robust.c", ()),
    (CORRECT / "rwlock_writers.c", ()),
    (ROOT / "examples" / "bank" / "bank.c", ()),
]
PYTHON = """
import queue, threading
todo, done = queue.Queue(4), queue.Queue()
def work():
    while (item := todo.get()) is not None:
        done.put(item * item)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for item in range(50): todo.put(item)
for _ in threads: todo.put(None)
for thread in threads: thread.join()
print(sum(done.get() for _ in range(50)))
"""


@pytest.fixture(scope="module", autouse=True)
def _library(ptt: Ptt) -> None:
    if ptt("nptl", "path", status=None).returncode:
        pytest.skip("the trace-enabled thread library has not been built (./check.sh nptl)")


def events_of(ptt: Ptt, trace: Path) -> Iterator[dict[str, Any]]:
    """Return the events of a trace."""
    for line in ptt("view", "--format", "jsonl", trace).stdout.splitlines():
        yield json.loads(line)


@pytest.fixture
def record_inside(record: Recorder, ptt: Ptt) -> Any:
    """Recorder of programs on the trace-enabled library, which also runs them without it."""

    def run(*command: str) -> Path:
        plain = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        return record(*command, options=("--nptl", "auto", "-l", "4"), status=plain.returncode)

    return run


@pytest.mark.parametrize(("source", "arguments"), CASES, ids=[case[0].stem for case in CASES])
def test_hooks_and_library_agree(
    source: Path, arguments: tuple[str, ...], tmp_path: Path, ptt: Ptt, record_inside: Any
) -> None:
    """The hooks and the library report the same actions of a program."""
    program = Compiler(tmp_path, ROOT / "native" / "include")(
        source, f"-I{ROOT / 'tests' / 'corpus'}"
    )
    found = compare(events_of(ptt, record_inside(program, *arguments)))
    assert not found.differences
    assert found.compared > 0


def test_hooks_and_library_agree_on_python(ptt: Ptt, record_inside: Any) -> None:
    """Python is a program with many libraries, all of other projects."""
    found = compare(events_of(ptt, record_inside(sys.executable, "-c", PYTHON)))
    assert not found.differences
    assert found.compared > 100


def test_hooks_and_library_agree_on_every_error(tmp_path: Path, ptt: Ptt) -> None:
    """All errors of the routines: mutexes of other threads, limits, ends."""
    sources = sorted((ROOT / "tests" / "conformance").glob("*.c"))
    program = tmp_path / "conformance"
    subprocess.run(
        ["gcc", "-std=gnu11", "-O1", "-g", "-pthread", *sources, "-o", program], check=True
    )
    trace = tmp_path / "run.ptt"
    recorder = ptt.command("record", "--nptl", "auto", "-l", "4", "-o", trace, "--")
    run_all(program, routines(program), tmp_path / "run", before=recorder, env=ptt.environment())
    found = compare(events_of(ptt, trace))
    assert not found.differences
    assert found.compared > 1000
