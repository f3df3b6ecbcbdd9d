"""prctl and seccomp: a confinement that is refused is none; threads that name themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Compiler
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
def test_refused_confinement(call: str, traced: Runner, compile_c: Compiler) -> None:
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
