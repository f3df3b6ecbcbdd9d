"""A recording keeps the names of the recorded build, whatever is built later."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from nptltrace.trace.bundling import own_names

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

# One thread makes another wait. The next version renames the functions and
# everything that lies before them.
PROGRAM = """
#include <pthread.h>
#include <time.h>
static pthread_mutex_t %(lock)s = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
%(more)s
static __attribute__((noinline)) void %(wait)s(void)
{
	pthread_mutex_lock(&%(lock)s);
	pthread_mutex_unlock(&%(lock)s);
}
static void *%(run)s(void *arg)
{
	pthread_barrier_wait(&both);
	%(wait)s();
	return arg;
}
int main(void)
{
	pthread_t thread;
	pthread_barrier_init(&both, NULL, 2);
	pthread_mutex_lock(&%(lock)s);
	pthread_create(&thread, NULL, %(run)s, NULL);
	pthread_barrier_wait(&both);
	nanosleep(&(struct timespec){0, 100000000}, NULL);
	pthread_mutex_unlock(&%(lock)s);
	pthread_join(thread, NULL);
	return 0;
}
"""
OLD = {"lock": "old_lock", "wait": "old_wait", "run": "old_run", "more": ""}
NEW = {
    "lock": "new_lock", "wait": "new_wait", "run": "new_run",
    "more": "char filling[4096] = {1}; int first(int n) { return n * 3 + filling[n]; }",
}  # fmt: skip
BUILD_ID = ["-Wl,--build-id=sha1"]
NO_BUILD_ID = ["-Wl,--build-id=none"]


KEEP = {"PTT_BUNDLE": None}


def read(ptt: Ptt, *traces: Path) -> str:
    """Return all names in reports and events."""
    return "".join(
        ptt(*command, *traces).stdout
        for command in (("report", "-v"), ("report", "--by", "stack"), ("view", "--stacks"))
    )


@pytest.mark.parametrize("flags", [BUILD_ID, NO_BUILD_ID])
def test_names_survive_the_next_build(
    ptt: Ptt, compile_c: Compiler, record: Recorder, flags: list[str]
) -> None:
    program = compile_c(PROGRAM % OLD, *flags)
    trace = record(program, env=KEEP)
    before = read(ptt, trace)
    for name in ("old_lock", "old_wait", "old_run", "program.c:"):
        assert name in before
    program.unlink()
    assert read(ptt, trace) == before
    compile_c(PROGRAM % NEW, *flags)
    assert read(ptt, trace) == before


@pytest.mark.parametrize("flags", [BUILD_ID, NO_BUILD_ID])
def test_runs_of_two_builds_have_their_own_names(
    ptt: Ptt, compile_c: Compiler, record: Recorder, tmp_path: Path, flags: list[str]
) -> None:
    old = record(compile_c(PROGRAM % OLD, *flags), env=KEEP)
    new = record(compile_c(PROGRAM % NEW, *flags), env=KEEP)
    for order in ((old, new), (new, old)):
        both = read(ptt, *order)
        assert {"old_lock", "old_wait", "new_lock", "new_wait"} <= set(re.findall(r"\w+", both))
    ptt("merge", "-o", tmp_path / "both.ptt", old, new)
    merged = set(re.findall(r"\w+", ptt("report", tmp_path / "both.ptt").stdout))
    known = {"old_lock", "new_lock"}
    # Without a build-id, names cannot be told apart after two traces were merged.
    assert known <= merged if flags == BUILD_ID else "old_lock" not in merged


def test_no_bundle_keeps_no_names(ptt: Ptt, compile_c: Compiler, record: Recorder) -> None:
    program = compile_c(PROGRAM % OLD, *BUILD_ID)
    trace = record(program, options=("--no-bundle",), env=KEEP)
    assert not (trace / "info" / "symbols.jsonl").exists()
    compile_c(PROGRAM % NEW, *BUILD_ID)
    names = read(ptt, trace)
    assert "old_" not in names
    assert "new_" not in names


def test_only_names_of_the_programs_own_files_are_kept(
    compile_c: Compiler, record: Recorder
) -> None:
    trace = record(compile_c(PROGRAM % OLD), env=KEEP)
    lines = map(json.loads, (trace / "info" / "symbols.jsonl").read_text().splitlines())
    assert {line["module"].rpartition("/")[2] for line in lines} == {"program"}
    shell = record("/bin/sh", "-c", "exit 0", env=KEEP)
    assert not (shell / "info" / "symbols.jsonl").exists()


@pytest.mark.usefixtures("native_in_process")
def test_names_that_take_too_long_are_left_out(
    compile_c: Compiler, record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_c(PROGRAM % OLD)
    trace = record(program)
    for rate, left_out in (("_TRACE_BYTES_PER_S", trace), ("_FILE_BYTES_PER_S", program)):
        with monkeypatch.context() as patch:
            patch.setattr(own_names, rate, 0)
            assert own_names.keep_names(trace, 60) == [str(left_out)]
    assert own_names.keep_names(trace, 60) == []
    assert "old_wait" in (trace / "info" / "symbols.jsonl").read_text()


@pytest.mark.usefixtures("native_in_process")
def test_only_the_first_of_many_streams_are_read(
    compile_c: Compiler, record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_c(PROGRAM % OLD)
    trace = record(program)
    first, second = sorted(trace.glob("stream-*"))
    second.write_bytes(b"not looked at")
    monkeypatch.setattr(own_names, "_STREAMS", 1)
    assert own_names.keep_names(trace, 60) == []
    names = (trace / "info" / "symbols.jsonl").read_text()
    assert "old_lock" in names
    assert "main" in names
    assert first.stat().st_size


def test_a_removed_trace_does_not_stop_the_recording(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    """The program removes the directory for the names."""
    gone = tmp_path / "run.ptt"
    body = PROGRAM % OLD
    program = compile_c(body.replace("return 0;", f'return system("rm -rf {gone}/info");').replace(
        "#include <time.h>", "#include <time.h>\n#include <stdlib.h>"))  # fmt: skip
    ptt("record", "-o", gone, "--", program, env=KEEP)
    shutil.rmtree(gone, ignore_errors=True)
