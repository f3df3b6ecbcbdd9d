"""mlockall: the tracer's buffers do not count as memory that a program locks."""

from __future__ import annotations

import json
import platform
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

LOCKS = """
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void give_up_rights(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};

    syscall(SYS_capset, &head, data);
}

static long locked_kb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[200];
    long kb = -1;

    while (fgets(line, sizeof(line), file))
        sscanf(line, "VmLck: %ld", &kb);
    fclose(file);
    return kb;
}

int main(int argc, char **argv)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct rlimit limit = {strtoul(argv[1], NULL, 0), strtoul(argv[1], NULL, 0)};
    int result, error, future;
    char *page;

    if (argc > 3 && (setrlimit(RLIMIT_MEMLOCK, &limit), atoi(argv[3])))
        give_up_rights();
    errno = 0;
    result = mlockall(atoi(argv[2]));
    error = errno;
    page = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    future = page != MAP_FAILED;
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    printf("[%d, %d, %d, %ld]\\n", result, error, future, locked_kb());
    return 0;
}
"""
CURRENT, FUTURE, ON_FAULT = 1, 2, 4
MIB = 1 << 20


@pytest.mark.parametrize("flags", [CURRENT, CURRENT | FUTURE, CURRENT | ON_FAULT])
@pytest.mark.parametrize("rights", [True, False], ids=["privileged", "limited"])
@pytest.mark.parametrize("limit", [16 * MIB, 64 << 10], ids=["enough", "little"])
def test_locking_memory_works_as_untraced(
    ptt: Ptt, compile_c: Compiler, flags: int, *, rights: bool, limit: int
) -> None:
    program = compile_c(LOCKS, name="locks")
    arguments = [str(program), str(limit), str(flags), str(int(not rights))]
    plain = json.loads(ptt("record", "--original", "--", *arguments).stdout)
    traced = json.loads(
        ptt("record", "-o", compile_c.directory / "run.ptt", "--", *arguments).stdout
    )
    assert traced[:3] == plain[:3]
    # the tracer itself is in memory, too
    assert plain[3] <= traced[3] <= plain[3] + 8 * 1024
    assert (traced[3] > 0) == (plain[3] > 0)


# Limits itself to a few KB more than it uses, and has threads that contend for a lock.
LIMITED = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *hold(void *unused)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        for (volatile int j = 0; j < 2000; j++)
            ;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

int main(int argc, char **argv)
{
    FILE *file = fopen("/proc/self/status", "r");
    struct rlimit limit = {0};
    long kb = atol(argv[1]), used = 0;
    pthread_t thread[3];
    pthread_attr_t attr;
    char line[200];

    while (fgets(line, sizeof(line), file))
        sscanf(line, "VmData: %ld", &used);
    limit.rlim_cur = limit.rlim_max = (used + kb) << 10;
    setrlimit(RLIMIT_DATA, &limit);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread[i], &attr, hold, NULL))
            return 2;
    if (mmap(NULL, kb * 768, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 3;
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
"""


def test_the_tracer_uses_none_of_the_memory_that_the_program_may_lock(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    program = compile_c(LIMITED, name="limited")
    enough = next(
        kb for kb in range(512, 4096, 64)
        if subprocess.run([program, str(kb)], check=False).returncode == 0
    )  # fmt: skip
    ptt("record", "-o", tmp_path / "t", "--", program, str(enough))


STACK = """
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE (1 << 18)
#define BARE 512 /* around the caller's own frame */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static char *bottom;
static volatile int stop;

static void spin(int n)
{
    for (volatile int i = 0; i < n; i++)
        ;
}

static void *hold(void *arg)
{
    while (!stop) {
        pthread_mutex_lock(&mutex);
        spin(3000);
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_wrlock(&rwlock);
        spin(3000);
        pthread_rwlock_unlock(&rwlock);
        sem_post(&sem);
        usleep(20);
    }
    return arg;
}

static void call(int way)
{
    if (way == 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    } else if (way == 1) {
        pthread_mutex_lock(&mutex);
        pthread_cond_wait(&cond, &mutex);
        pthread_mutex_unlock(&mutex);
    } else if (way == 2) {
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    } else {
        sem_wait(&sem);
    }
}

static void *work(void *arg)
{
    char *here = __builtin_frame_address(0), *end = here - BARE;

    for (int way = 0; way < 4; way++) {
        char *at = bottom;

        memset(bottom, 0x5a, end - bottom);
        for (int i = 0; i < 200; i++)
            call(way);
        while (at < end && *at == 0x5a)
            at++;
        printf("%ld\\n", (long)(here - at));
    }
    return arg;
}

int main(void)
{
    pthread_attr_t attr;
    pthread_t holder, worker;

    bottom = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, bottom, SIZE);
    bottom += 4096;
    pthread_create(&holder, NULL, hold, NULL);
    pthread_create(&worker, &attr, work, NULL);
    pthread_join(worker, NULL);
    stop = 1;
    pthread_join(holder, NULL);
    return 0;
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="frame sizes are known for x86-64 only")
@pytest.mark.parametrize("options", [(), ("--level", "3", "--stacks", "all")])
def test_calls_need_little_stack(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """The limits of docs/reference/effects.md; a compiler may lay out frames a little larger."""
    program = compile_c(STACK, "-O1", "-Wl,-z,now")
    used = ptt("record", "-q", *options, "-o", tmp_path / "t", "--", program).stdout.split()
    assert len(used) == 4
    assert max(map(int, used)) <= 4 * 1024 + 512
