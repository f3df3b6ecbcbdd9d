"""Processes in their own PID namespaces, with pids that mean other processes to the recorder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.packets import processes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder


def _may_unshare() -> bool:
    command = ["unshare", "--pid", "--fork", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _may_unshare(), reason="no PID namespace can be made here")

# Containers side by side. In each container, two processes with threads lock; it may skip pids.
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long rounds;

static void *work(void *mutex)
{
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
        if (i % 64 == 0)
            usleep(500);
    }
    return NULL;
}

static void work_in_threads(void)
{
    pthread_mutex_t mutex[4];
    pthread_t thread[4];

    for (int i = 0; i < 4; i++) {
        pthread_mutex_init(&mutex[i], NULL);
        pthread_create(&thread[i], NULL, work, &mutex[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

static pid_t begin_container(int pids_to_skip)
{
    pid_t outside = fork(), first;
    int status;

    if (outside)
        return outside;
    if (unshare(CLONE_NEWPID))
        _exit(9);
    first = fork();
    if (!first) {
        for (int i = 0; i < pids_to_skip; i++) {
            pid_t skipped = vfork();

            if (!skipped)
                _exit(0);
            waitpid(skipped, NULL, 0);
        }
        if (!fork()) {
            work_in_threads();
            _exit(0);
        }
        work_in_threads();
        wait(NULL);
        _exit(0);
    }
    waitpid(first, &status, 0);
    _exit(WIFSIGNALED(status) ? 8 : 0);
}

int main(int argc, char **argv)
{
    int containers = atoi(argv[1]), failed = 0, status;

    rounds = argc < 4 ? 1000 : atol(argv[3]);
    for (int i = 0; i < containers; i++)
        begin_container(atoi(argv[2]));
    while (wait(&status) > 0)
        failed += status != 0;
    return failed;
}
"""


def mutex_events(ptt: Ptt, trace: Path) -> dict[str, Any]:
    """Return the output of `ptt stat`, and check that nothing was lost."""
    stat: dict[str, Any] = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert stat["lost"] == 0
    return stat


def test_nothing_is_lost_from_processes_with_unknown_pids(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    """The recorder ends and has every event, whatever the inner pids mean outside."""
    stat = mutex_events(ptt, record(compile_c(PROGRAM), "2", "500"))
    # Each container has two processes of four threads.
    assert stat["event_types"]["MUTEX_TAKEN"] == 2 * 2 * 4 * 1000
    workers = [t for p in stat["processes"] for t in p["threads"] if t["events"] > 1000]
    assert len(workers) == 2 * 2 * 4
    assert {thread["events"] for thread in workers} == {2002}


def test_processes_have_the_pids_of_the_recorder(record: Recorder, compile_c: Compiler) -> None:
    """Each process has two pids, and the name of its own program."""
    started = processes(record(compile_c(PROGRAM), "3", "0", "30000"))
    assert len(started) == 1 + 3 * 3
    assert len({process["pid"] for process in started}) == len(started)
    assert sorted(process["inner_pid"] for process in started if process["inner_pid"] < 3) == [
        *[1] * 3,
        *[2] * 3,
    ]
    assert {process["name"] for process in started} == {"program"}


def test_threads_in_a_namespace_have_names(ptt: Ptt, record: Recorder, compile_c: Compiler) -> None:
    stat = mutex_events(ptt, record(compile_c(PROGRAM), "1", "0", "40000"))
    names = {t["name"] for p in stat["processes"] for t in p["threads"] if t["events"] > 1000}
    assert names == {"program"}


def test_processes_with_the_same_pid_have_levels_of_their_own(
    record: Recorder, compile_c: Compiler
) -> None:
    """When the second process uses its page of levels, the first gets no fatal signal."""
    # The exit status is the number of killed processes.
    record(compile_c(PROGRAM), "20", "0", "2000")


def test_levels_can_be_changed_from_outside(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    command = [str(compile_c(PROGRAM)), "1", "0", "200000"]
    start = ptt.command("record", "-o", trace, "--", *command)
    with subprocess.Popen(start, env=ptt.environment()) as recorder:
        try:
            pid = _outer_pid(trace)
            before = ptt("level", str(pid)).stdout
            assert re.match(rf"{pid} .*mutex=2", before), before
            ptt("level", str(pid), "0")
            assert "mutex=0" in ptt("level", str(pid)).stdout
        finally:
            for process in processes(trace):
                # The end of one process may have ended the other.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process["pid"], signal.SIGKILL)
            recorder.wait(60)


def _outer_pid(trace: Path) -> int:
    """Return the pid of a namespace's first process, as soon as the recorder has found it."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            inside = [process for process in processes(trace) if process["inner_pid"] == 1]
        except (OSError, ValueError):
            inside = []
        if inside:
            return int(inside[0]["pid"])
        time.sleep(0.05)
    pytest.fail("the recorder has not found the process")
