"""Programs that are difficult for a tracer: they do not notice the tracer."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING

import pytest

from tests import sanitized
from tests.support import ALL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conformance.hostile.programs import Hostile

root = pytest.mark.skipif(os.getuid() != 0, reason="only root may do this")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="no older symbols there")
def test_old_symbols_and_libpthread_work(hostile: Hostile) -> None:
    came = hostile.same(hostile.program("old_symbols.c"))
    assert came.out.splitlines()[-1] == "4000"


# ---- modules ----


def _module(hostile: Hostile, *flags: str) -> Path:
    return hostile.program("module.c", "-shared", "-fPIC", *flags)


def test_libraries_come_and_go(hostile: Hostile) -> None:
    hostile.same(hostile.program("modules.c"), _module(hostile), "now", "100")
    assert hostile.facts()["uncovered"] == []


@pytest.mark.parametrize(
    ("how", "flags", "why"),
    [
        ("deep", (), "RTLD_DEEPBIND"),
        ("space", (), "dlmopen"),
        ("now", ("-DOWN", "-Wl,-Bsymbolic"), "-Bsymbolic"),
    ],
)
def test_modules_that_bypass_the_tracer_are_reported(
    how: str, flags: tuple[str, ...], why: str, hostile: Hostile
) -> None:
    module = _module(hostile, *flags)
    came = hostile.same(hostile.program("modules.c"), module, how, "3")
    if sanitized.BUILD and came.status:
        pytest.skip(f"untraced: {came.out}")
    (reported,) = hostile.facts()["uncovered"]
    assert reported["module"] == str(module)
    assert why in reported["why"]
    assert f"{module}\n    pthread_mutex" in hostile.ptt("stat", hostile.trace).stdout


@pytest.mark.parametrize("handler", ["ring", "shared", "file"])
def test_many_linker_namespaces_work(handler: str, hostile: Hostile) -> None:
    program, module = hostile.program("modules.c"), _module(hostile)
    was = hostile.plain(program, module, "spaces", "20")
    if sanitized.BUILD and "cannot" in was.out:
        pytest.skip(f"untraced: {was.out}")
    now = hostile.traced(program, module, "spaces", "20", options=("--handler", handler))
    assert (now.out, now.err, now.status) == (was.out, was.err, 0)
    if handler != "file":
        (reported,) = hostile.facts()["uncovered"]
        assert (reported["module"], "dlmopen" in reported["why"]) == (str(module), True)


def test_unreadable_headers_do_no_harm(hostile: Hostile) -> None:
    library = hostile.program("closed.c", "-DLIBRARY", "-shared", "-fPIC")
    program = hostile.program("closed.c")
    for options in (("-l", "3"), ("-l", "2", "--stacks", "0"), ("-l", "3", "--stacks", "all")):
        came = hostile.same(program, library, options=options, env={"LD_BIND_NOW": "1"})
        assert came.out == "600 3000\n"


# ---- ends ----


@pytest.mark.parametrize(
    "how",
    ["return", "atexit", "pthread_exit", "_exit", "quick_exit", "abort", "kill", "crash",
     "exit in thread", "busy threads"],
)  # fmt: skip
def test_programs_end_as_untraced(how: str, hostile: Hostile) -> None:
    hostile.same(hostile.program("exits.c"), how)


@pytest.mark.parametrize("handler", ["ring", "shared"])
@pytest.mark.parametrize("what", ["notified", "stacks", "ends", "asynchronous", "failing"])
def test_rare_features_work_as_untraced(what: str, handler: str, hostile: Hostile) -> None:
    if sanitized.BUILD and what == "asynchronous":
        pytest.skip("the sanitizer does not notice that the frames were left")
    program = hostile.program("corners.c")
    was = hostile.plain(program, what)
    for level in "23":
        now = hostile.traced(program, what, options=("-l", level, "--handler", handler))
        assert (now.out, now.status) == (was.out, was.status)
        # a thread that is cancelled in the middle of recording leaves its last event unfinished
        assert (now.err, now.lost) == (was.err, 0) or what == "asynchronous"


def test_cxx20_destructors_exceptions_and_waits_work(hostile: Hostile) -> None:
    hostile.same(hostile.program("destructors.cc"))


# ---- signals ----


@pytest.mark.parametrize("how", ["profile", "stack"])
def test_signals_at_full_speed_do_no_harm(how: str, hostile: Hostile) -> None:
    hostile.same(hostile.program("signals.c"), how)


@pytest.mark.parametrize("handler", ["ring", "shared", "file"])
def test_signals_reach_the_intended_thread(handler: str, hostile: Hostile) -> None:
    for level in "23":
        came = hostile.same(hostile.program("meant.c"), options=("-l", level, "--handler", handler))
        assert "another thread" not in came.out


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_signal_handlers_may_jump_away(handler: str, hostile: Hostile) -> None:
    program = hostile.program("signals.c")
    came = hostile.traced(program, "jump", "150", options=("-l", "2", "--handler", handler))
    assert (came.out, came.status) == ("jump: all posted\n3000\n", 0)


# ---- processes ----


def test_forks_work_as_untraced(hostile: Hostile) -> None:
    assert hostile.same(hostile.program("forks.c"), "200").out == "200 of 200\n"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_forks_do_no_harm(hostile: Hostile) -> None:
    forks = 10_000 if ALL else 1_000
    came = hostile.traced(hostile.program("forks.c"), str(forks), patience_s=800)
    assert (came.out, came.err, came.status) == (f"{forks} of {forks}\n", "", 0)


def test_a_daemon_may_close_all_descriptors(hostile: Hostile, tmp_path: Path) -> None:
    result = tmp_path / "result"
    hostile.traced(hostile.program("forks.c"), "0", result)
    end = time.monotonic() + 120
    while not (result.exists() and result.read_text()) and time.monotonic() < end:
        time.sleep(0.01)
    assert result.read_text() == "descriptor 0, 3000\n"


# ---- rights and means ----


@pytest.mark.parametrize("handler", ["ring", "shared"])
@pytest.mark.parametrize(
    "what",
    ["memory", "file size", "descriptors", "locked memory", "filter", "filter by syscall",
     "strict", pytest.param("user", marks=root)],
)  # fmt: skip
def test_programs_may_limit_or_confine_themselves(
    what: str, handler: str, hostile: Hostile
) -> None:
    if what == "strict" and "tsan" in (sanitized.runtime() or ""):
        pytest.skip("the sanitizer's thread goes on after the program's threads have ended")
    came = hostile.same(
        hostile.program("limits.c"), what, options=("-l", "3", "--handler", handler)
    )
    if sanitized.BUILD and not came.out.count("3000"):
        pytest.skip("the sanitizer needs what the program gives up")
    assert came.out.count("3000") == (0 if what == "strict" else 2)


@root
def test_a_program_may_change_its_root_directory(hostile: Hostile, tmp_path: Path) -> None:
    hostile.same(hostile.program("limits.c"), "directory", tmp_path)


def test_the_file_handler_reports_that_it_cannot_write(hostile: Hostile, tmp_path: Path) -> None:
    program = hostile.program("limits.c")
    for what in ("file size", "filter"):
        plain = hostile.plain(program, what)
        if sanitized.BUILD and plain.status:
            pytest.skip("the sanitizer needs what the program gives up")
        library = str(hostile.ptt.native / "lib" / "libnptltrace.so")
        env = {"LD_PRELOAD": library, "PTHREAD_NPTL_TRACE": f"file:{tmp_path / what[:4]}:3"}
        traced = hostile.plain(program, what, env=env)
        assert (traced.out, traced.status) == (plain.out, plain.status)
        (line,) = set(traced.err.splitlines())
        assert line.startswith("ptt: file: cannot write ")


def test_real_time_threads_do_not_wait_for_the_collector(hostile: Hostile) -> None:
    came = hostile.traced(
        hostile.program("realtime.c"), options=("-l", "3", "--buffer-budget", "1M")
    )
    if "not permitted" in came.out:
        pytest.skip("SCHED_FIFO is not permitted")
    assert (came.out, came.status) == ("went on\n", 0)
    assert came.lost > 0
