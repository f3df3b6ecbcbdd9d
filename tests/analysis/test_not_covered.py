"""PTT reports what it cannot see: futexes, runtimes, locks of a program's own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.cli.output.text.not_covered import modules

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

# Two threads at a spin lock that only the program knows.
SPINS = """
#include <pthread.h>
#include <unistd.h>
static int lock;
#ifdef WAITS
static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
#endif
static void take(void) { while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) ; }
static void give(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }
static void *spin(void *unused)
{
	(void)unused;
#ifdef WAITS
	pthread_mutex_lock(&once);
	usleep(2000);
	pthread_mutex_unlock(&once);
#endif
	take();
	usleep(100000);
	give();
	return NULL;
}
int main(void)
{
	pthread_t one, two;
	pthread_create(&one, NULL, spin, NULL);
	pthread_create(&two, NULL, spin, NULL);
	return pthread_join(one, NULL) || pthread_join(two, NULL);
}
"""
OPENMP = """
#include <unistd.h>
static int arrived;
int main(void)
{
#pragma omp parallel num_threads(2)
	{
		if (__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED))
			usleep(20000);
#pragma omp barrier
	}
	return 0;
}
"""


def _report(ptt: Ptt, trace: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(ptt("report", "--format", "json", trace).stdout)
    return report


def _flat(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


def test_a_futex_of_no_known_lock(
    program: Callable[[str], Path], record: Recorder, ptt: Ptt
) -> None:
    trace = record(program("futex_lock"), "own")
    report = _report(ptt, trace)
    assert (report["waits"], report["idle_waits"], report["unknown_waits"]) == (0, 0, 1)
    assert report["unknown_ns"] > 0
    (lock,) = [item for item in report["objects"] if item["kind"] == "futex"]
    assert lock["unknown_ns"] == report["unknown_ns"]
    text = _flat(ptt("report", trace).stdout)
    assert "nothing was contended in what is covered" in text
    assert "in 1 wait for futexes of no lock that is known" in text
    assert "waiting for work" not in text
    text = _flat(ptt("check", trace).stdout)
    assert "nothing found in what is covered not covered: 1 wait for futexes" in text
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["futex_waits"] == 1
    assert "nothing was contended in what is covered" in ptt("top", trace).stdout


def test_a_deadlock_of_unknown_locks_is_not_idle(
    program: Callable[[str], Path], record: Recorder, ptt: Ptt
) -> None:
    trace = record(program("futex_lock"), "own-deadlock")
    report = _report(ptt, trace)
    assert [wait["class"] for wait in report["never_ended"]] == ["unknown", "unknown"]
    text = ptt("report", trace).stdout
    assert "2 threads were still waiting at the end, not known what for" in text
    assert "waiting for work" not in text


def test_a_lock_of_rust_is_known_by_its_name(
    program: Callable[[str], Path], record: Recorder, ptt: Ptt
) -> None:
    report = _report(ptt, record(program("futex_lock")))
    if report["unknown_waits"]:
        pytest.skip("functions are not known by their names here")
    assert report["waits"] == 1
    (lock,) = [item for item in report["objects"] if item["kind"] == "rust-mutex"]
    (blamed,) = lock["blamed"]
    (holder,) = [thread for thread in report["threads"] if thread["start_ns"] != report["first_ns"]]
    assert blamed["tid"] == holder["tid"]
    assert blamed["site"].startswith(("hold+", "give+"))
    assert blamed["wait_caused_ns"] == lock["held_ns"] > 0


def test_threads_without_events(compile_c: Compiler, record: Recorder, ptt: Ptt) -> None:
    trace = record(compile_c(SPINS))
    silent = [thread["silent_ns"] for thread in _report(ptt, trace)["threads"]]
    assert sorted(ns > 50_000_000 for ns in silent) == [False, True, True]
    text = _flat(ptt("report", trace).stdout)
    assert "nothing was contended in what is covered" in text
    assert "not covered: 2 threads had no event for" in text
    assert "critical path: " in text


def test_a_short_wait_does_not_hide_threads_without_events(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    trace = record(compile_c(SPINS, "-DWAITS"))
    # On a busy machine the short wait is long enough for a finding.
    for command in (["report"], ["check", "--ignore", "sleeping-holder"]):
        assert "not covered: 2 threads had no event for" in _flat(ptt(*command, trace).stdout)
    part = _flat(ptt("report", "--object", "once", trace).stdout)
    assert "critical path of the whole, whatever was chosen: " in part


def test_modules_are_listed_by_reason() -> None:
    first, second = ({"module": f"/lib/{name}.so", "why": "has locks"} for name in ("a", "b"))
    late = {"module": "/bin/c", "why": "was loaded late"}
    lines = list(modules([first, late, second]))
    assert lines == ["a.so, b.so: has locks", "/bin/c: was loaded late"]


def test_a_runtime_with_locks_of_its_own(tmp_path: Path, record: Recorder, ptt: Ptt) -> None:
    source, program = tmp_path / "omp.c", tmp_path / "omp"
    source.write_text(OPENMP)
    if (
        shutil.which("gcc") is None
        or subprocess.run(
            ["gcc", "-fopenmp", source, "-o", program], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no compiler for OpenMP")
    trace = record(program)
    for command in ("report", "check", "top"):
        text = _flat(ptt(command, trace).stdout)
        assert "not covered: " in text
        assert "libgomp" in text
    assert "in what is covered" in ptt("check", trace).stdout


def test_full_coverage_is_reported_plainly(
    program: Callable[[str], Path], record: Recorder, ptt: Ptt
) -> None:
    trace = record(program("lock_count"), "1", "1")
    assert "nothing was contended\n" in ptt("report", trace).stdout
    assert "nothing found\n" in ptt("check", trace).stdout


def test_a_process_that_hangs_without_events(compile_c: Compiler, ptt: Ptt, tmp_path: Path) -> None:
    """Main waits for a thread without events; a forked child has no events at all."""
    program = compile_c("""
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        static void nap(long ms)
        {
            struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
            syscall(SYS_nanosleep, &t, 0);
        }
        static void *sleeps(void *unused)
        {
            nap(600000);
            return unused;
        }
        int main(void)
        {
            pthread_t thread;
            pthread_create(&thread, 0, sleeps, 0);
            nap(20);
            if (!fork()) {
                nap(1200);
                kill(getppid(), SIGKILL);
                _exit(0);
            }
            return pthread_join(thread, 0);
        }
    """)
    trace = tmp_path / "hang.ptt"
    ptt("record", "-q", "-o", trace, "--", program, status=137)
    text = _flat(ptt("check", trace).stdout)
    assert "not covered: 1 thread had no event for" in text
    assert re.search(
        r"not covered: process (\d+) had no event since process (?!\1)\d+ forked it;", text
    )


def test_a_signal_handler_may_post(compile_c: Compiler, ptt: Ptt, tmp_path: Path) -> None:
    """The check is silent if a signal handler may post, or if the kernel may send a signal."""
    source = """
        #include <pthread.h>
        #include <semaphore.h>
        #include <signal.h>
        #include <unistd.h>
        static pthread_mutex_t room = PTHREAD_MUTEX_INITIALIZER;
        static sem_t places;
        static void stop(int number)
        {
            (void)number;
        }
        static void *leaves(void *unused)
        {
            usleep(50000);
            pthread_mutex_lock(&room);
            sem_post(&places);
            pthread_mutex_unlock(&room);
            return unused;
        }
        int main(void)
        {
            pthread_t thread;
            if (!fork()) {
                usleep(300000);
                kill(getppid(), SIGKILL);
                _exit(0);
            }
            signal(SIGTERM, stop);
            if (ALARM)
                alarm(100);
            sem_init(&places, 0, 0);
            pthread_create(&thread, 0, leaves, 0);
            pthread_mutex_lock(&room);
            return sem_wait(&places);
        }
    """
    for alarm in (0, 1):
        trace = tmp_path / f"{alarm}.ptt"
        program = compile_c(source, f"-DALARM={alarm}")
        ptt("record", "-q", "-o", trace, "--", program, status=137)
        document = json.loads(ptt("check", "--format", "json", trace, status=None).stdout)
        seen = [(finding["kind"], finding["severity"]) for finding in document["findings"]]
        assert seen == ([] if alarm else [("stuck", "warning")])
