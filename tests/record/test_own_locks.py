"""`ptt record --locks`: locks of the program's own libraries, described by a file."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

SOURCE = ROOT / "tests" / "programs" / "own_lock.c"
LOCKS = """
[[lock]]
type = "gate"
like = "mutex"
functions = [
    { name = "gate_enter", does = "acquire", try = "gate_try", taken = "zero" },
    { name = "gate_try", does = "try", taken = "zero" },
    { name = "gate_leave", does = "release" },
]

[[lock]]
type = "bell"
like = "cond"
functions = [
    { name = "bell_wait", does = "wait", argument = 2, mutex = 1 },
    { name = "bell_ring", does = "wake" },
]
"""


def _gcc(*args: str | Path) -> None:
    subprocess.run(["gcc", "-O1", "-g", "-pthread", *args], check=True, capture_output=True)


def _library(path: Path) -> Path:
    _gcc("-shared", "-fPIC", "-DLIBRARY", f'-DMAKER="{path.stem}"', SOURCE, "-o", path)
    return path


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """The program that is linked to the library."""
    library, program = _library(tmp_path / "libgate.so"), tmp_path / "gates"
    _gcc(SOURCE, "-o", program, library, f"-Wl,-rpath,{tmp_path}")
    return program


@pytest.fixture
def locks(tmp_path: Path) -> tuple[str, str]:
    """The option that describes the library's functions."""
    path = tmp_path / "my_locks.toml"
    path.write_text(LOCKS)
    return "--locks", str(path)


def _report(ptt: Ptt, trace: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(ptt("report", "--format", "json", trace).stdout)
    return report


def _assert_contended(found: dict[str, Any]) -> None:
    """Insist that the report has one wait for a gate, blamed on the thread that held it."""
    (lock,) = [row for row in found["objects"] if row["kind"] == "gate" and row["waits"]]
    assert lock["waits"] == 1
    assert 0 < lock["held_ns"] <= lock["wait_ns"]
    (blamed,) = lock["blamed"]
    assert blamed["site"].startswith("hold+")
    # the library's internal waits are not reported as well
    assert found["unknown_waits"] == 0
    assert not [row for row in found["objects"] if row["kind"] == "futex"]


def test_a_wait_for_an_own_lock_has_its_holder(
    linked: Path, locks: tuple[str, str], record: Recorder, ptt: Ptt
) -> None:
    trace = record(linked, "contend", options=locks)
    _assert_contended(_report(ptt, trace))
    [finding] = json.loads(ptt("check", "--format", "json", trace, status=1).stdout)["findings"]
    assert finding["kind"] == "sleeping-holder"  # the thread sleeps with the gate
    assert "gate" in ptt("report", trace).stdout
    ptt("verify", trace)


def test_a_deadlock_of_own_locks_is_found(
    linked: Path, locks: tuple[str, str], record: Recorder, ptt: Ptt
) -> None:
    trace = record(linked, "deadlock", options=locks)
    check = json.loads(ptt("check", "--format", "json", trace, status=1).stdout)
    assert "deadlock" in {finding["kind"] for finding in check["findings"]}


def test_an_own_condition_releases_its_lock(
    linked: Path, locks: tuple[str, str], record: Recorder, ptt: Ptt
) -> None:
    trace = record(linked, "bell", options=locks)
    report = _report(ptt, trace)
    (bell,) = [row for row in report["objects"] if row["kind"] == "bell"]
    assert bell["idle_ns"] > 30_000_000
    (gate,) = [row for row in report["objects"] if row["kind"] == "gate"]
    assert gate["hold_max_ns"] < bell["idle_ns"]  # the gate was free while the thread waited
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []


# One byte at the end of readable memory: only the library knows the size of its own lock.
SMALL_LOCK = """
#include <stdlib.h>
#ifdef LIBRARY
int small_enter(char *lock) { while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) ; return 0; }
int small_try(char *lock) { return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); }
void small_leave(char *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }
#else
#include <pthread.h>
#include <sys/mman.h>
int small_enter(char *), small_try(char *);
void small_leave(char *);
static void *run(void *lock)
{
	for (int i = 0; i < 1000; i++) {
		small_enter(lock);
		small_leave(lock);
		if (!small_try(lock))
			small_leave(lock);
	}
	return NULL;
}
int main(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread[2];
	mprotect(page + 4096, 4096, PROT_NONE);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, run, page + 4095);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
#endif
"""
SMALL_LOCKS = """
[[lock]]
type = "small"
like = "mutex"
functions = [
    { name = "small_enter", does = "acquire", try = "small_try", taken = "zero" },
    { name = "small_try", does = "try", taken = "zero" },
    { name = "small_leave", does = "release" },
]
"""


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_a_lock_at_the_end_of_readable_memory_is_recorded(
    tmp_path: Path, record: Recorder, ptt: Ptt, handler: str
) -> None:
    source, library = tmp_path / "small.c", tmp_path / "libsmall.so"
    source.write_text(SMALL_LOCK)
    _gcc("-shared", "-fPIC", "-DLIBRARY", source, "-o", library)
    _gcc(source, "-o", tmp_path / "small", library, f"-Wl,-rpath,{tmp_path}")
    locks = tmp_path / "small.toml"
    locks.write_text(SMALL_LOCKS)
    options = ("--locks", str(locks), "--handler", handler)
    report = _report(ptt, record(tmp_path / "small", options=options))
    (lock,) = [row for row in report["objects"] if row["kind"] == "small"]
    assert lock["holds"] >= 2000


# A barrier, and a function that lets two threads run another function.
GATHERING = """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef LIBRARY
struct gathering { int come, count; };
void gather(struct gathering *at)
{
	__atomic_add_fetch(&at->come, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&at->come, __ATOMIC_ACQUIRE) % at->count)
		usleep(1000);
}
static void *run(void *both)
{
	((void (*)(void *))((void **)both)[0])(((void **)both)[1]);
	return NULL;
}
void twice(void (*function)(void *), void *data)
{
	void *both[] = {(void *)function, data};
	pthread_t other;
	pthread_create(&other, NULL, run, both);
	function(data);
	pthread_join(other, NULL);
}
#else
struct gathering { int come, count; } gathering = {0, 2};
void gather(struct gathering *at);
void twice(void (*function)(void *), void *data);
static int comers;
static void come(void *late)
{
	if (__atomic_add_fetch(&comers, 1, __ATOMIC_ACQ_REL) == 2)
		usleep(50000);
	gather(late);
}
int main(void)
{
	twice(come, &gathering);
	return 0;
}
#endif
"""
GATHERINGS = """
[[lock]]
type = "gathering"
like = "barrier"
functions = [{ name = "gather", does = "wait" }, { name = "twice", does = "team" }]
"""


def test_an_own_barrier_and_parallel_region_are_recorded(
    tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    source, library = tmp_path / "gather.c", tmp_path / "libgather.so"
    source.write_text(GATHERING)
    _gcc("-shared", "-fPIC", "-DLIBRARY", source, "-o", library)
    _gcc(source, "-o", tmp_path / "gather", library, f"-Wl,-rpath,{tmp_path}")
    locks = tmp_path / "gather.toml"
    locks.write_text(GATHERINGS)
    report = _report(ptt, record(tmp_path / "gather", options=("--locks", str(locks))))
    kinds = [row for row in report["objects"] if row["kind"] == "gathering"]
    (barrier,) = [row for row in kinds if row["name"] == "gathering"]
    assert barrier["wait_max_ns"] > 40_000_000
    (blamed,) = barrier["blamed"]
    assert blamed["site"].startswith("come+")
    # after its part, the thread has no more work
    (pool,) = [row for row in report["objects"] if row["kind"] == "team-pool"]
    assert pool["idle_waits"] == 1


def test_children_without_an_environment_are_recorded(
    linked: Path, locks: tuple[str, str], record: Recorder, ptt: Ptt
) -> None:
    report = _report(ptt, record(linked, "clean", options=locks))
    _assert_contended(report)
    kinds = [row["kind"] for row in report["objects"]]
    # of the parent, its child, and the program that the child executes
    assert kinds.count("gate") == 3


def test_locks_of_opened_libraries_are_recorded(
    tmp_path: Path, locks: tuple[str, str], record: Recorder, ptt: Ptt
) -> None:
    program = tmp_path / "opens"
    _gcc("-DOPENED", SOURCE, "-o", program, "-ldl")
    one, other = _library(tmp_path / "one.so"), _library(tmp_path / "other.so")
    trace = record(program, one, other, options=locks)
    report = _report(ptt, trace)
    _assert_contended(report)
    # locks that both libraries have are recorded of the first, then of the second
    (second,) = [lock for lock in report["objects"] if lock["kind"] == "gate" and not lock["waits"]]
    assert second["holds"] == 1
    ran = subprocess.run([program, one, other], check=True, capture_output=True, text=True)
    traced = ptt("record", *locks, "-o", tmp_path / "again.ptt", "--", program, one, other)
    assert traced.stdout == ran.stdout == "one\nother\nother\n"


def test_own_locks_are_unknown_without_the_option(linked: Path, record: Recorder, ptt: Ptt) -> None:
    report = _report(ptt, record(linked, "contend"))
    assert not [row for row in report["objects"] if row["kind"] == "gate"]
    assert report["unknown_waits"] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lock = 3", "expected tables [[lock]], and nothing else"),
        ("[[lock]", "line 1"),
        (LOCKS.replace('"gate"', '"gmutex"'), "type 'gmutex' is there already"),
        (LOCKS.replace('"gate"', '"bell"'), "type 'bell' is there already"),
        (LOCKS.replace('"mutex"', '"latch"'), "gate: like is mutex, rwlock, cond, barrier, not"),
        (LOCKS.replace('"gate_leave"', '"gate_enter"'), "gate_enter is there twice"),
        (LOCKS.replace('"release"', '"wake"'), "gate_leave: does is acquire, try"),
        (LOCKS.replace('taken = "zero"', 'taken = "maybe"'), "gate_enter: taken is always, zero"),
        (LOCKS.replace("mutex = 1", "mutex = 7"), "bell_wait: mutex is the number of an argument"),
        (LOCKS.replace(", mutex = 1", ""), "bell_wait: mutex is the number of an argument"),
        (LOCKS.replace('try = "gate_try"', 'try = "gate_tri"'), "gate_enter: try names 'gate_tri'"),
        (
            LOCKS.replace('"acquire"', '"acquire-shared"'),
            "gate_enter: does is acquire, try, release",
        ),
        (LOCKS.replace('"bell_ring"', '"bell ring"'), "name is a function's"),
        (LOCKS.replace('"bell_ring"', '"dlsym"'), "dlsym: the tracer itself needs that function"),
        (LOCKS.replace("doe", "wha"), "gate_enter: unknown 'whas'"),
        (None, "No such file or directory"),
    ],
)
def test_a_senseless_file_is_refused(text: str | None, says: str, tmp_path: Path, ptt: Ptt) -> None:
    path = tmp_path / "wrong.toml"
    if text is not None:
        path.write_text(text)
    done = ptt("record", "--locks", path, "--", "/bin/true", status=2)
    (line,) = done.stderr.splitlines()
    assert str(path) in line
    assert says in line
