"""Futexes of locks compiled into programs: the waiting function shows the purpose of the wait."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

# The waiting thread has to begin before the waking thread.
pytestmark = pytest.mark.alone

# A thread waits for one thing after the other; each arrives while the thread waits for it.
EACH = """
#include <atomic>
#include <barrier>
#include <latch>
#include <semaphore>
#include <thread>
#include <unistd.h>
static std::binary_semaphore units{0};
static std::latch gate{2};
static std::barrier<> meeting{2};
static std::atomic<int> word{0};
int main()
{
	std::thread waiter([] {
		units.acquire();
		gate.arrive_and_wait();
		meeting.arrive_and_wait();
		word.wait(0);
	});
	auto later = [] { usleep(100000); };
	later();
	units.release();
	later();
	gate.count_down();
	later();
	meeting.arrive_and_wait();
	later();
	word = 1;
	word.notify_all();
	waiter.join();
}
"""
# The only thread waits forever.
ALONE = """
#include <semaphore>
#include <unistd.h>
int main()
{
	std::binary_semaphore never{0};
	ualarm(300000, 0);
	never.acquire();
}
"""

# The same for Qt and GLib, with our own declarations.
LIBRARIES = """
#include <thread>
#include <unistd.h>
struct QSemaphore {
	void *own;
	explicit QSemaphore(int units = 0);
	void acquire(int units = 1);
	void release(int units = 1);
};
extern "C" {
void *g_async_queue_new();
void *g_async_queue_pop(void *queue);
void g_async_queue_push(void *queue, void *what);
}
int main()
{
	QSemaphore units;
	void *jobs = g_async_queue_new();
	std::thread waiter([&] {
		units.acquire();
		g_async_queue_pop(jobs);
	});
	usleep(100000);
	units.release();
	usleep(100000);
	g_async_queue_push(jobs, jobs);
	waiter.join();
}
"""


def _build(text: str, place: Path, *flags: str) -> Path:
    source, program = place / "program.cc", place / "program"
    source.write_text(text)
    compiler = ("g++", "-std=c++20", "-g", "-pthread")
    if subprocess.run(
        [*compiler, source, "-o", program, *flags], capture_output=True, check=False
    ).returncode:
        pytest.skip("no compiler for C++20, or not the libraries")
    return program


def _known(ptt: Ptt, *command: str | Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(ptt(*command, "--format", "json", status=None).stdout)
    return answer


@pytest.mark.parametrize("optimised", ["-O0", "-O1", "-O2"])
def test_waits_of_cxx20_have_their_kinds(optimised: str, tmp_path: Path, ptt: Ptt) -> None:
    program, trace = _build(EACH, tmp_path, optimised), tmp_path / "each.ptt"
    ptt("record", "-o", trace, "--", program)
    objects = {row["kind"]: row for row in _known(ptt, "report", trace)["objects"]}
    if "futex" in objects:
        pytest.skip("the names of functions are unknown here")
    for kind in ("std-latch", "std-barrier"):
        assert objects[kind]["waits"] >= 1
    for kind in ("std-semaphore", "std-atomic"):
        assert objects[kind]["waits"] == 0
        assert objects[kind]["unknown_ns"] > 0


def test_waits_of_qt_and_glib_have_their_kinds(tmp_path: Path, ptt: Ptt) -> None:
    program = _build(LIBRARIES, tmp_path, "-O1", "-l:libQt5Core.so.5", "-l:libglib-2.0.so.0")
    ptt("record", "-o", tmp_path / "each.ptt", "--", program)
    objects = {row["kind"]: row for row in _known(ptt, "report", tmp_path / "each.ptt")["objects"]}
    if "futex" in objects:
        pytest.skip("the names of functions are unknown here")
    assert objects["qsemaphore"]["unknown_ns"] > 0
    assert objects["gasyncqueue"]["idle_ns"] > 0
    assert objects["gasyncqueue"]["unknown_ns"] == 0


def test_a_wait_that_no_thread_can_end_is_stuck(tmp_path: Path, ptt: Ptt) -> None:
    program, trace = _build(ALONE, tmp_path), tmp_path / "alone.ptt"
    done = ptt("record", "-o", trace, "--", program, status=128 + signal.SIGALRM)
    assert "recorded" in done.stderr
    if "futex" in {row["kind"] for row in _known(ptt, "report", trace)["objects"]}:
        pytest.skip("the names of functions are unknown here")
    (finding,) = _known(ptt, "check", trace)["findings"]
    assert finding["kind"] == "stuck"
    assert "waits for std-semaphore" in finding["message"]
