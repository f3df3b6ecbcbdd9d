"""Robust mutexes, priority-ceiling mutexes and all other kinds, as owners live and die."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
def test_releasing_an_unrecovered_mutex_works_as_untraced(
    kind: str, protocol: str, traced: Runner, compile_c: Compiler
) -> None:
    program = compile_c(PROGRAM, f"-DTYPE={kind}", f"-DPROTOCOL={protocol}")
    run = traced(program, level=2)
    assert run.status == 0
    names = [event.name for event in run.only.events if event.name.startswith("MUTEX_")]
    assert names == ["MUTEX_INIT", "MUTEX_TAKEN", "MUTEX_TAKEN", "MUTEX_FREE", "MUTEX_ERROR"]


CONTENDED = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t mutex;
static long turns;
static void *work(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        turns++;
        if (i % 16 == 0)
            sched_yield();
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
int main(void)
{
    pthread_mutexattr_t attr;
    pthread_t threads[4];
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&attr, PROTOCOL);
    pthread_mutex_init(&mutex, &attr);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return turns != 8000;
}
"""


@pytest.mark.parametrize("level", [1, 2, 3])
def test_all_kinds_return_the_same_results_as_untraced(
    level: int, traced: Runner, program: Callable[[str], Path]
) -> None:
    kinds = program("mutex_kinds")
    plain = traced.plain(kinds)
    assert plain.stdout.count("ENOTRECOVERABLE") >= 3 * 4
    assert traced(kinds, level=level).stdout == plain.stdout


@pytest.mark.parametrize("protocol", ["PTHREAD_PRIO_NONE", "PTHREAD_PRIO_INHERIT"])
def test_each_wait_for_a_robust_mutex_is_reported(
    protocol: str, traced: Runner, compile_c: Compiler
) -> None:
    run = traced(compile_c(CONTENDED, f"-DPROTOCOL={protocol}"), level=2)
    assert run.status == 0
    names = run.only.names()
    waited = [event for event in run.only.of("MUTEX_TAKEN") if "wait_ns" in event.fields]
    assert names["MUTEX_TAKEN"] == names["MUTEX_FREE"] >= 8000
    assert names["MUTEX_WAIT"] == len(waited) > 0
