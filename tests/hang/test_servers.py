"""Threads of a server wait for each other, in calls through an interposed library."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

from tests.ports import free_port
from tests.real.real import listens, need, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

# Once a file exists, the thread that syncs files wants the lock of the writing thread, and the
# writing thread wants the lock of the syncing thread.
BETWEEN = """
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <stdlib.h>
    #include <unistd.h>
    #include <sys/syscall.h>
    static pthread_mutex_t quota = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
    static volatile int writes, syncs;
    static int is_on(void)
    {
        return access(getenv("ON"), F_OK) == 0;
    }
    static void both(pthread_mutex_t *first, volatile int *here, pthread_mutex_t *second)
    {
        pthread_mutex_lock(first);
        for (*here = 1; !writes || !syncs;)
            usleep(1000);
        pthread_mutex_lock(second);
    }
    int fdatasync(int fd)
    {
        if (is_on())
            both(&journal, &syncs, &quota);
        return syscall(SYS_fdatasync, fd);
    }
    ssize_t write(int fd, const void *data, size_t size)
    {
        if (is_on() && syncs && getpid() == gettid())
            both(&quota, &writes, &journal);
        return syscall(SYS_write, fd, data, size);
    }
"""


def test_a_hanging_redis_is_found(ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path) -> None:
    need("redis-server", "redis-cli")
    library = compile_c(BETWEEN, "-shared", "-fPIC")
    on = tmp_path / "on"
    port = str(free_port())
    files = ("--dir", tmp_path, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
    with subprocess.Popen(
        ["redis-server", "--port", port, "--bind", "127.0.0.1", *files],
        env={**os.environ, "LD_PRELOAD": str(library), "ON": str(on)},
        stdout=subprocess.DEVNULL,
    ) as server:
        try:
            wait_until(lambda: listens(int(port)), "redis listens")
            assert ptt("hang", str(server.pid)).returncode == 0
            on.touch()
            writing = ["redis-cli", "-p", port, "-r", "-1", "-i", "0.1", "incr", "n"]
            with subprocess.Popen(writing, stdout=subprocess.DEVNULL) as client:
                try:
                    wait_until(lambda: hangs(ptt, server.pid), "it hangs")
                finally:
                    client.kill()
            document = json.loads(ptt("hang", "--format", "json", str(server.pid), status=1).stdout)
            (finding,) = document["findings"]
            assert finding["kind"] == "deadlock"
            assert sorted(finding["object_names"]) == ["journal", "quota"]
            assert server.pid in finding["threads"]
        finally:
            server.kill()


def hangs(ptt: Ptt, pid: int) -> bool:
    return ptt("hang", str(pid), status=None).returncode == 1
