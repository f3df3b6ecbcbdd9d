"""Level 1 has the releases that threads sleep for, and no others, for mutexes of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import nptltrace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Recorder

PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int go;

/* the other thread is in the system call futex: number 202 on x86-64, 98 on AArch64 */
static int may_sleep(void)
{
    char text[512], path[64];
    int fd;
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", go);
    fd = open(path, 0);
    if (fd < 0) return 1;
    long n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return strncmp(text, "202 ", 4) == 0 || strncmp(text, "98 ", 3) == 0;
}

static void *wait_for_it(void *unused)
{
    __atomic_store_n(&go, gettid(), __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void await_sleeper(void)
{
    while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
        usleep(100);
    while (!may_sleep())
        usleep(100);
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pthread_t thread;
    int recursive = 0, waits = 0;

    pthread_mutexattr_init(&attr);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "recursive"))
            pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE), recursive = 1;
        if (!strcmp(argv[i], "errorcheck"))
            pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
        if (!strcmp(argv[i], "adaptive"))
            pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
        if (!strcmp(argv[i], "robust"))
            pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
        if (!strcmp(argv[i], "inherit"))
            pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
        if (!strcmp(argv[i], "wait"))
            waits = 1;
    }
    pthread_mutex_init(&mutex, &attr);
    for (int i = 0; i < 3; i++) {  /* nobody waits */
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    if (recursive)
        pthread_mutex_lock(&mutex);
    pthread_create(&thread, 0, wait_for_it, 0);
    await_sleeper();
    if (recursive)
        pthread_mutex_unlock(&mutex);  /* the outer lock stays */
    if (waits) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec++;
        pthread_cond_timedwait(&cond, &mutex, &soon);
    }
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, 0);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Path:
    from tests.support import Compiler

    place = tmp_path_factory.mktemp("awaited")
    return Compiler(place, native_stage / "include")(PROGRAM)


@pytest.mark.parametrize(
    "kind",
    ["", "recursive", "errorcheck", "adaptive", "robust", "inherit", "recursive robust inherit",
     "wait"],
)  # fmt: skip
def test_one_release_is_awaited(program: Path, record: Recorder, kind: str) -> None:
    ts = nptltrace.open(record(program, *kind.split(), options=("--level", "1")))
    events = ts.events().select(["event", "tid", "pid"]).to_pylist()
    by_first = [e for e in events if e["event"] == "MUTEX_FREE_AWAITED" and e["tid"] == e["pid"]]
    # A wait for a condition leaves the mutex as if others slept.
    assert len(by_first) == 1 + (kind == "wait")
    (wait,) = ts.sql("SELECT holder_stack_id FROM waits WHERE kind = 'mutex'").to_pylist()
    assert wait["holder_stack_id"] is not None
    assert not ts.findings().num_rows
