"""GLib, Qt, libc++, OpenMP and stdio locks are recorded with holders, waits and deadlocks."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

PROGRAM = ROOT / "tests" / "programs" / "library_locks.c"
LIBRARIES = {
    "glib": ("-DGLIB", "-l:libglib-2.0.so.0"),
    "qt": ("-DQT", "-l:libQt5Core.so.5"),
    "qt-rw": ("-DQT_RW", "-l:libQt5Core.so.5"),
    "libc++": ("-DLIBCXX", "-l:libc++.so.1"),
    "omp": ("-DOMP", "-l:libgomp.so.1"),
    "critical": ("-DCRITICAL", "-l:libgomp.so.1"),
    "stdio": ("-DSTDIO",),
}
TYPES = {
    "glib": "gmutex", "qt": "qmutex", "qt-rw": "qreadwritelock", "omp": "omp-lock",
    "critical": "omp-critical", "stdio": "stdio", "libc++": "libcxx-shared-mutex",
}  # fmt: skip


@pytest.fixture(params=list(LIBRARIES))
def library(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Name of a library, and a program that uses the library's locks."""
    program = tmp_path / "locks"
    flags = LIBRARIES[request.param]
    made = subprocess.run(
        ["gcc", "-O1", "-g", "-pthread", PROGRAM, "-o", program, "-Wl,--no-as-needed", *flags],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"no library for {request.param} here")
    return request.param, program


def _report(ptt: Ptt, trace: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(ptt("report", "--format", "json", trace).stdout)
    return report


def test_a_wait_for_a_library_lock_has_its_holder(
    library: tuple[str, Path], record: Recorder, ptt: Ptt
) -> None:
    name, program = library
    report = _report(ptt, record(program, "contend"))
    (lock,) = [row for row in report["objects"] if row["kind"] == TYPES[name] and row["waits"]]
    assert lock["threads"] == 2
    assert lock["holds"] >= 2
    # the holder sleeps for 300 ms with the lock when the other thread is about to ask for it
    assert lock["waits"] == 1
    assert 0 < lock["held_ns"] <= lock["wait_ns"]
    (blamed,) = lock["blamed"]
    assert blamed["site"].startswith("hold+")
    # the library's internal waits are not reported as well
    assert {row["kind"] for row in report["objects"] if row["waits"]} == {TYPES[name]}
    assert not [row for row in report["objects"] if row["kind"] == "futex"]


def test_two_library_locks_in_opposite_orders_deadlock(
    library: tuple[str, Path], record: Recorder, ptt: Ptt
) -> None:
    name, program = library
    if name == "critical":
        pytest.skip("a critical section has no try function: the guess may miss the wait")
    trace = record(program, "deadlock")
    check = json.loads(ptt("check", "--format", "json", trace, status=1).stdout)
    assert "deadlock" in {finding["kind"] for finding in check["findings"]}
    assert len(_report(ptt, trace)["deadlocks"]) == 1


def test_opposite_lock_orders_are_found_without_a_deadlock(
    library: tuple[str, Path], record: Recorder, ptt: Ptt
) -> None:
    _, program = library
    trace = record(program, "orders")
    # the stream's memory may have belonged to another lock
    check = json.loads(ptt("check", "--suspects", "--format", "json", trace, status=1).stdout)
    assert {finding["kind"] for finding in check["findings"]} == {"lock-order-inversion"}


def test_a_correct_program_has_no_findings(
    library: tuple[str, Path], record: Recorder, ptt: Ptt
) -> None:
    _, program = library
    trace = record(program, "correct")
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
    report = _report(ptt, trace)
    assert sum(row["holds"] for row in report["objects"]) >= 200
    ptt("verify", trace)


# Two readers hold the lock at once. Then one reader waits for a writer, which has released the
# lock for a wait.
READERS = """
#include "show.h"
typedef struct { void *pointer; } opaque;
void init(opaque *lock, int recursive) __asm__("_ZN14QReadWriteLockC1ENS_13RecursionModeE");
void take_read(opaque *lock) __asm__("_ZN14QReadWriteLock11lockForReadEv");
void take_write(opaque *lock) __asm__("_ZN14QReadWriteLock12lockForWriteEv");
_Bool try_write(opaque *lock) __asm__("_ZN14QReadWriteLock15tryLockForWriteEv");
void give(opaque *lock) __asm__("_ZN14QReadWriteLock6unlockEv");
void init_cond(opaque *cond) __asm__("_ZN14QWaitConditionC1Ev");
_Bool await_cond(opaque *cond, opaque *lock, unsigned long ms)
	__asm__("_ZN14QWaitCondition4waitEP14QReadWriteLockm");
static opaque lock, cond;
static void *reads(void *unused)
{
	arrive();
	take_read(&lock);
	give(&lock);
	return unused;
}
int main(void)
{
	pthread_t thread;
	init(&lock, 0);
	init_cond(&cond);
	take_read(&lock);
	pthread_create(&thread, NULL, reads, NULL);
	pthread_join(thread, NULL);
	next_arrival();
	give(&lock);
	take_write(&lock);
	await_cond(&cond, &lock, 1);
	pthread_create(&thread, NULL, reads, NULL);
	let_block();
	give(&lock);
	pthread_join(thread, NULL);
	if (!try_write(&lock))
		return 1;
	give(&lock);
	return 0;
}
"""


def test_readers_and_writers_of_glib_are_recorded(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    try:
        program = compile_c(READERS, "-l:libQt5Core.so.5")
    except AssertionError:
        pytest.skip("no Qt here")
    trace = record(program)
    (lock,) = [row for row in _report(ptt, trace)["objects"] if row["kind"] == "qreadwritelock"]
    assert lock["waits"] == 1
    assert lock["threads"] == 3
    (blamed,) = lock["blamed"]
    assert blamed["site"].startswith("main+")
    counts = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    assert counts["RWLOCK_TAKEN_WRITE"] == 3
    assert counts["RWLOCK_TAKEN_READ"] == 3
    assert counts["RWLOCK_FREE"] == 6
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
    assert "rwlock lock is a lock of type qreadwritelock" in ptt("view", trace).stdout
    ptt("verify", trace)


PLUGIN = """
void g_mutex_lock(void *lock);
void g_mutex_unlock(void *lock);
static void *lock;
int run(void)
{
	g_mutex_lock(&lock);
	g_mutex_unlock(&lock);
	return 0;
}
"""
LOADS_LATE = """
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **path)
{
	for (int i = 1; i < count; i++) {
		void *plugin = dlopen(path[i], RTLD_NOW | RTLD_LOCAL);
		if (!plugin || ((int (*)(void))dlsym(plugin, "run"))() || dlclose(plugin))
			return 1;
	}
	if (fork() == 0) {
		void *plugin = dlopen(path[1], RTLD_NOW | RTLD_LOCAL);
		_exit(!plugin || ((int (*)(void))dlsym(plugin, "run"))());
	}
	int status = 1;
	wait(&status);
	return status != 0;
}
"""


def test_a_library_opened_late_and_closed_is_recorded(
    tmp_path: Path, compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    source, plugin = tmp_path / "plugin.c", tmp_path / "plugin.so"
    source.write_text(PLUGIN)
    made = subprocess.run(
        ["gcc", "-shared", "-fPIC", source, "-o", plugin, "-l:libglib-2.0.so.0"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no GLib here")
    trace = record(compile_c(LOADS_LATE, "-ldl"), *[plugin] * 300)
    counts = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    assert counts["MUTEX_TAKEN"] >= 301
    # the child of the fork reports the kind of its lock
    kinds = [row["kind"] for row in _report(ptt, trace)["objects"]]
    assert kinds.count("gmutex") == 2


# The constructor's last call unlocks, and returns to the dynamic linker.
ENDS_WITH_A_CALL = """
extern void g_mutex_lock(void **), g_mutex_unlock(void **);
static void *lock;
__attribute__((constructor)) void begin(void)
{
	g_mutex_lock(&lock);
	g_mutex_unlock(&lock);
}
int run(void)
{
	g_mutex_lock(&lock);
	g_mutex_unlock(&lock);
	return 0;
}
"""


def test_an_unlock_by_a_tail_call_is_recorded(
    tmp_path: Path, compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    source, plugin = tmp_path / "plugin.c", tmp_path / "plugin.so"
    source.write_text(ENDS_WITH_A_CALL)
    made = subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", source, "-o", plugin, "-l:libglib-2.0.so.0"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no GLib here")
    trace = record(compile_c(LOADS_LATE, "-ldl"), plugin)
    counts = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    assert counts["MUTEX_FREE"] >= counts["MUTEX_TAKEN"] >= 2


def test_a_weak_reference_to_a_missing_library_does_no_harm(
    compile_c: Compiler, record: Recorder
) -> None:
    program = compile_c(
        "#include <stddef.h>\n"
        "__attribute__((weak)) int omp_test_lock(int *);\n"
        "int main(void) { int lock = 0; return omp_test_lock ? omp_test_lock(&lock) : 0; }\n"
    )
    record(program)


def test_a_glib_condition_releases_its_mutex(tmp_path: Path, record: Recorder, ptt: Ptt) -> None:
    program = tmp_path / "locks"
    made = subprocess.run(
        ["gcc", "-O1", "-g", "-pthread", PROGRAM, "-o", program, *LIBRARIES["glib"]],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no GLib here")
    trace = record(program, "pool")
    report = _report(ptt, trace)
    (cond,) = [row for row in report["objects"] if row["kind"] == "gcond"]
    assert cond["idle_ns"] > 30_000_000
    assert report["unknown_waits"] == 0
    (lock,) = [row for row in report["objects"] if row["kind"] == "gmutex"]
    # the mutex was free while the thread waited
    assert lock["hold_max_ns"] < cond["idle_ns"]
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []


# Marks each lock with its own number, so a call that leads to the other library shows.
FAKE = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
void g_mutex_lock(int *lock)
{
	while (__atomic_exchange_n(lock, NUMBER, __ATOMIC_ACQUIRE))
		;
}
int g_mutex_trylock(int *lock)
{
	int none = 0;
	return __atomic_compare_exchange_n(lock, &none, NUMBER, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
void g_mutex_unlock(int *lock)
{
	if (*lock != NUMBER)
		abort();
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
	pthread_testcancel();
}
"""


def _library(place: Path, name: str, source: str, *flags: str) -> Path:
    written, made = place / f"{name}.c", place / f"lib{name}.so"
    written.write_text(source)
    subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", "-fexceptions", written, "-o", made, *flags], check=True
    )
    return made


TWO_VERSIONS = """
#include <dlfcn.h>
#include <stddef.h>
int main(int count, char **path)
{
	int (*run[2])(void);
	for (int i = 0; i < 2; i++) {
		void *plugin = dlopen(path[1 + i], RTLD_NOW | RTLD_LOCAL);
		run[i] = plugin ? (int (*)(void))dlsym(plugin, "run") : NULL;
		if (!run[i])
			return 1;
	}
	for (int i = 0; i < 2000; i++)
		if (run[i % 2]())
			return 1;
	return count - 3;
}
"""


def test_two_versions_of_a_library_are_kept_apart(
    tmp_path: Path, compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    plugins = []
    for number in (1, 2):
        _library(tmp_path, f"version{number}", FAKE, f"-DNUMBER={number}")
        linked = (f"-L{tmp_path}", f"-lversion{number}", f"-Wl,-rpath,{tmp_path}")
        plugins.append(_library(tmp_path, f"plugin{number}", PLUGIN, *linked))
    trace = record(compile_c(TWO_VERSIONS, "-ldl"), *plugins)
    counts = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    assert counts["MUTEX_TAKEN"] == counts["MUTEX_FREE"] == 2000
    ptt("verify", trace)


# Threads are cancelled while they unlock, and lock again as their last action.
CANCELLED = """
#include <pthread.h>
void g_mutex_lock(int *lock);
void g_mutex_unlock(int *lock);
static int lock;
static void last(void *unused)
{
	g_mutex_lock(&lock);
	g_mutex_unlock(&lock);
}
static void *work(void *unused)
{
	pthread_cleanup_push(last, unused);
	for (;;) {
		g_mutex_lock(&lock);
		g_mutex_unlock(&lock);
	}
	pthread_cleanup_pop(0);
}
int main(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *result;
		pthread_create(&thread, NULL, work, NULL);
		for (int k = 0; k < 100; k++) {
			g_mutex_lock(&lock);
			g_mutex_unlock(&lock);
		}
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			return 1;
	}
	return lock;
}
"""


def test_cancelled_threads_release_library_locks(
    tmp_path: Path, compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    _library(tmp_path, "fake", FAKE, "-DNUMBER=1")
    linked = (f"-L{tmp_path}", "-lfake", f"-Wl,-rpath,{tmp_path}")
    trace = record(compile_c(CANCELLED, "-pthread", *linked))
    # locks that the threads take as they end are recorded, too
    assert ptt("view", trace).stdout.count(" last") >= 20
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
    ptt("verify", trace)


# A signal handler takes another lock all the time. Then a thread that holds a lock forks, and
# the child continues as the lock's owner.
FORKS_AND_SIGNALS = """
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
void g_mutex_lock(void **lock);
void g_mutex_unlock(void **lock);
static void *lock, *other;
static volatile int rounds;
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0:detect_leaks=0";
}
static void on_alarm(int number)
{
	(void)number;
	g_mutex_lock(&other);
	g_mutex_unlock(&other);
	rounds++;
}
int main(void)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	int status = 1;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	while (rounds < 200) {
		g_mutex_lock(&lock);
		g_mutex_unlock(&lock);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	g_mutex_lock(&lock);
	if (fork() == 0) {
		g_mutex_unlock(&lock);
		g_mutex_lock(&lock);
		g_mutex_unlock(&lock);
		_exit(0);
	}
	g_mutex_unlock(&lock);
	wait(&status);
	return status != 0;
}
"""


@pytest.mark.parametrize("flags", [(), ("-fsanitize=address",)])
def test_library_locks_survive_forks_and_signals(
    flags: tuple[str, ...], tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(FORKS_AND_SIGNALS)
    made = subprocess.run(
        ["gcc", "-O1", source, "-o", program, "-l:libglib-2.0.so.0", *flags],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode or subprocess.run([program], check=False).returncode:
        pytest.skip("no GLib here, or no sanitizer")
    trace = record(program)
    counts = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    # the child releases the lock that its parent took
    assert counts["MUTEX_FREE"] == counts["MUTEX_TAKEN"] + 1
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
    ptt("verify", trace)
