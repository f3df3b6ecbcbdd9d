"""A robust mutex is taken over from a dead thread and given back inconsistent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Compiler
    from tests.tracer.counted import Runner

PROGRAM = """
#include <errno.h>
#include <pthread.h>
static pthread_mutex_t mutex;
static void *die(void *arg)
{
    pthread_mutex_lock(&mutex);
    return arg;
}
int main(void)
{
    pthread_mutexattr_t attr;
    pthread_t thread;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&attr, TYPE);
    pthread_mutexattr_setprotocol(&attr, PROTOCOL);
    pthread_mutex_init(&mutex, &attr);
    pthread_create(&thread, NULL, die, NULL);
    pthread_join(thread, NULL);
    if (pthread_mutex_lock(&mutex) != EOWNERDEAD || pthread_mutex_unlock(&mutex))
        return 1;
    return pthread_mutex_lock(&mutex) != ENOTRECOVERABLE;
}
"""


@pytest.mark.parametrize("protocol", ["PTHREAD_PRIO_NONE", "PTHREAD_PRIO_INHERIT"])
@pytest.mark.parametrize("kind", ["PTHREAD_MUTEX_NORMAL", "PTHREAD_MUTEX_ERRORCHECK"])
def test_release_of_what_is_not_recovered(
    kind: str, protocol: str, traced: Runner, compile_c: Compiler
) -> None:
    program = compile_c(PROGRAM, f"-DTYPE={kind}", f"-DPROTOCOL={protocol}")
    run = traced(program, level=2)
    assert run.status == 0
    names = [event.name for event in run.only.events if event.name.startswith("MUTEX_")]
    assert names == ["MUTEX_INIT", "MUTEX_TAKEN", "MUTEX_TAKEN", "MUTEX_FREE", "MUTEX_ERROR"]
