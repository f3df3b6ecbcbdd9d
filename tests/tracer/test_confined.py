"""prctl and seccomp: a refused confinement changes nothing; threads keep names and stacks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt
    from tests.tracer.counted import Runner

REFUSED = """
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(void)
{
    struct sock_fprog none = {0};
    pid_t child;
    if (CALL == 0)
        return 1;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    child = fork();
    if (child == 0) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    (void)none;
    return 0;
}
"""
# Threads that begin in a confined program, recurse until they need new stack pages,
# and make one another wait.
CONFINED = """
#include "in_turn.h"
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void deeper(int left)
{
    char room[1500];
    memset(room, left, sizeof(room));
    if (left) {
        deeper(left - 1);
    } else {
        TAKE_IN_TURN(&mutex);
    }
    __asm__ volatile("" : : "r"(room) : "memory");
}
static void *run(void *arg)
{
    for (int i = 0; i < 20; i++)
        deeper(i % 10);
    return arg;
}
int main(void)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {.len = 1, .filter = &all};
    pthread_attr_t small;
    pthread_t thread[2];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 1;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 1;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    pthread_create(&thread[0], NULL, run, NULL);
    pthread_create(&thread[1], &small, run, NULL);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    return 0;
}
"""
NAMES = """
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *run(void *arg)
{
    syscall(SYS_prctl, PR_SET_NAME, "by system call", 0, 0, 0);
    return arg;
}
int main(void)
{
    pthread_t thread;
    prctl(PR_SET_NAME, "longer than the kernel takes");
    if (prctl(PR_SET_NAME, NULL) == 0 || errno != EFAULT)
        return 1;
    if (vfork() == 0) {
        prctl(PR_SET_NAME, "child");
        _exit(0);
    }
    pthread_create(&thread, NULL, run, NULL);
    return pthread_join(thread, NULL);
}
"""


@pytest.mark.parametrize(
    "call",
    [
        "prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &none)",
        "syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &none, 0, 0)",
        "syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &none)",
        "syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL)",
    ],
)
def test_refused_confinement_changes_nothing(
    call: str, traced: Runner, compile_c: Compiler
) -> None:
    run = traced(compile_c(REFUSED, f"-DCALL={call}"), level=2)
    assert run.status == 0
    assert [process.domain("MUTEX_") for process in run.processes] == [
        ["MUTEX_TAKEN", "MUTEX_FREE"]
    ] * 2


def test_threads_name_themselves(traced: Runner, compile_c: Compiler) -> None:
    run = traced(compile_c(NAMES), level=2)
    assert run.status == 0
    named = [event.text for process in run.processes for event in process.of("THREAD_NAME")]
    assert named == ["longer than the", "by system call"]


def test_threads_of_a_confined_program_have_stacks(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    trace = tmp_path / "run.ptt"
    ptt("record", "-o", trace, "--", compile_c(CONFINED))
    query = """select w.tid, s.frames from waits w left join stacks s using (run_id, stack_id)
        where w.class = 'contended'"""
    waits = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    assert len({wait["tid"] for wait in waits}) == 2
    # main() waits for no lock; the stack has the thread's function, its callee and its caller
    assert all(len(wait["frames"] or []) >= 3 for wait in waits)
