"""Children under the ring: each is a process of the trace; its parent's recording continues."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Compiler, Ptt, Recorder

SHELL = "true; ls / >/dev/null; ls / >/dev/null; (exec true); true | cat"

# Forks with the bare instruction, so no hook sees it, and both processes lock.
BARE_CLONE = """
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void work(void)
{
	for (int i = 0; i < 50000; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
}
int main(void)
{
	register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0;
	int status = 0;
	long child;

	work();
	__asm__ volatile("syscall"
		: "=a"(child)
		: "a"(56L), "D"((long)SIGCHLD), "S"(0L), "d"(0L), "r"(r10), "r"(r8)
		: "rcx", "r11", "memory");
	work();
	if (!child)
		_exit(3);
	waitpid((pid_t)child, &status, 0);
	return WEXITSTATUS(status);
}
"""


def test_shell_with_vfork_keeps_recording(record: Recorder, ptt: Ptt) -> None:
    trace = record("sh", "-c", SHELL)
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert stat["lost"] == 0
    commands = [process["cmdline"] for process in stat["processes"]]
    assert commands[0] == ["sh", "-c", SHELL]
    assert commands.count(["ls", "/"]) == 2
    assert ["true"] in commands
    assert ["cat"] in commands
    assert all(process["threads"] for process in stat["processes"])


def test_child_of_a_bare_fork_does_not_write_as_its_parent(
    compile_c: Callable[..., Path], tmp_path: Path, ptt: Ptt
) -> None:
    trace = tmp_path / "trace"
    done = ptt("record", "-o", trace, "--", compile_c(BARE_CLONE), status=3)
    assert "(0 lost" in done.stderr
    types = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    assert types["MUTEX_TAKEN"] == types["MUTEX_FREE"] == 100_000


def test_a_path_that_ld_preload_cannot_hold_still_works(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    native = tmp_path / "with space: and colon"
    shutil.copytree(ptt.native, native)
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    env = {"NPTLTRACE_NATIVE_DIR": str(native), "XDG_RUNTIME_DIR": str(runtime)}
    trace = tmp_path / "trace"
    # env removes the tracer's variables from the program's environment
    locks = str(program("lock_count"))
    command = ("sh", "-c", 'env -i "$1" 1 10; true', "sh", locks)
    done = ptt("record", "-o", trace, "--", *command, env=env)
    assert "ERROR" not in done.stderr
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert [locks, "1", "10"] in [process["cmdline"] for process in stat["processes"]]
    assert stat["event_types"]["MUTEX_TAKEN"] == 10


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_programs_started_after_the_recording_print_nothing(
    ptt: Ptt, tmp_path: Path, handler: str
) -> None:
    """A daemon that outlives its recording starts programs with the same environment."""
    trace, kept = tmp_path / "t", tmp_path / "env"
    ptt("record", "-o", trace, "--handler", handler, "--", "sh", "-c", f"env -0 >{kept}")
    pairs = (pair.split(b"=", 1) for pair in kept.read_bytes().split(b"\0") if pair)
    env = dict(pairs)
    assert handler.encode() in env[b"PTHREAD_NPTL_TRACE"]
    after = subprocess.run(["ls", "/"], env=env, capture_output=True, check=True)
    assert after.stderr == b""
    # If the recording is not visible, it may still run. Its standard error cannot be known.
    session, place = env[b"PTHREAD_NPTL_TRACE"].split(b":")[1].split(b",")[:2]
    elsewhere = os.fsencode(tmp_path / Path(os.fsdecode(session)).name)
    env[b"PTHREAD_NPTL_TRACE"] = b":".join([handler.encode(), elsewhere + b"," + place, b"2"])
    hidden = subprocess.run(["ls", "/"], env=env, capture_output=True, check=True)
    assert b"cannot join the recording" in hidden.stderr


# As under qemu-user, mremap() cannot map shared memory a second time.
NO_SECOND_MAPPING = """
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void *mremap(void *from, size_t old, size_t size, int flags, ...)
{
	va_list rest;
	void *to;
	va_start(rest, flags);
	to = va_arg(rest, void *);
	va_end(rest);
	if (!old) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mremap, from, old, size, flags, to);
}
int main(void)
{
	int status = 0;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pid_t child = fork();
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	if (!child)
		_exit(3);
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}
"""


def test_child_is_recorded_although_memory_cannot_be_mapped_twice(
    compile_c: Callable[..., Path], record: Recorder, ptt: Ptt
) -> None:
    trace = record(compile_c(NO_SECOND_MAPPING, "-rdynamic"), status=3)
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert stat["lost"] == 0
    assert len(stat["processes"]) == 2
    query = "select count(*) from events where event = 'MUTEX_TAKEN'"
    assert ptt("sql", "--format", "csv", trace, query).stdout.split()[-1] == "2001"


@pytest.mark.parametrize(("handler", "scarce"), [("ring", 120000), ("shared", 60000)])
def test_children_that_cannot_join_are_counted(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path, handler: str, scarce: int
) -> None:
    """The tracer writes nothing into files of the program."""
    trace, data = tmp_path / "t", tmp_path / "data"
    # There is no room for the segment. The second program says so on the recorder's standard error.
    # 120 MB have room for the buffers of `ring`, and little else.
    script = f"(ulimit -v 60000; {program('sem')}) 2>{data}; (ulimit -v {scarce}; {program('sem')})"
    done = ptt("record", "--handler", handler, "-o", trace, "--", "sh", "-c", script)
    assert data.read_text() == ""
    assert done.stderr.count("the program runs untraced") == 1
    assert "2 processes ran untraced: they could not join the recording" in done.stderr
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert stat["untraced_processes"] == 2
    assert "2 processes ran untraced" in ptt("stat", trace).stdout


def test_children_without_access_to_the_session_are_counted(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    hide = ["unshare", "-m", "sh", "-c"]
    if subprocess.run([*hide, "mount -t tmpfs t /dev/shm"], check=False).returncode:
        pytest.skip("needs root to hide a file system")
    trace, data = tmp_path / "t", tmp_path / "data"
    script = f"mount -t tmpfs t /dev/shm; {program('sem')} 2>{data}; true"
    ptt("record", "-o", trace, "--", *hide, script)
    assert data.read_text() == ""
    assert json.loads(ptt("stat", "--format", "json", trace).stdout)["untraced_processes"] == 1
    assert not (trace / ".untraced").exists()


def test_the_recorder_does_not_wait_for_children_that_cannot_join(
    ptt: Ptt, trace_dir: Path
) -> None:
    """The children have loaded the tracer, but there is no room for the buffers."""
    script = "(ulimit -v 60000; exec sleep 9 >&- 2>&-) & echo $!"
    done = ptt("record", "-o", trace_dir, "--", "sh", "-c", script)
    assert "1 process ran untraced" in done.stderr
    child = int(done.stdout)
    outlives = Path(f"/proc/{child}/cmdline")
    assert outlives.exists()
    assert outlives.read_text().startswith("sleep")
    os.kill(child, signal.SIGKILL)


# The constructor runs before the tracer's constructor.
SLOW_LIBRARY = """
#include <unistd.h>
__attribute__((constructor)) static void load(void)
{
	usleep(250000);
}
"""


def test_programs_that_load_slowly_are_recorded(
    compile_c: Compiler, tmp_path: Path, record: Recorder, ptt: Ptt
) -> None:
    """They join late: none counts as untraced, and the recording waits for running programs."""
    library = compile_c(SLOW_LIBRARY, "-shared", "-fPIC", name="libslow.so")
    slow = compile_c(
        "int main(void) { return 0; }",
        "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}", name="slow",
    )  # fmt: skip
    trace = record("sh", "-c", f"{slow}; ({slow} &)")
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert [process["cmdline"] for process in stat["processes"]].count([str(slow)]) == 2
    assert stat["uncovered"] == []
