"""Events have the kind of request for a lock, the deadline of a wait, and the priority."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Compiler
    from tests.tracer.counted import Runner

ASKING = """
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t w = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t s;
static sem_t none;

static void *waits(void *late)
{
	pthread_mutex_timedlock(&m, late);
	pthread_rwlock_timedrdlock(&w, late);
	sem_timedwait(&none, late);
	return NULL;
}

int main(void)
{
	struct timespec late = {1, 0}, in_time = {time(NULL) + 1000, 0};
	pthread_t thread;

	pthread_spin_init(&s, 0);
	sem_init(&none, 0, 0);
	pthread_mutex_lock(&m), pthread_mutex_unlock(&m);
	pthread_mutex_trylock(&m), pthread_mutex_unlock(&m);
	pthread_mutex_timedlock(&m, &in_time), pthread_mutex_unlock(&m);
	pthread_rwlock_rdlock(&w), pthread_rwlock_unlock(&w);
	pthread_rwlock_tryrdlock(&w), pthread_rwlock_unlock(&w);
	pthread_rwlock_wrlock(&w), pthread_rwlock_unlock(&w);
	pthread_rwlock_trywrlock(&w), pthread_rwlock_unlock(&w);
	pthread_rwlock_timedwrlock(&w, &in_time), pthread_rwlock_unlock(&w);
	pthread_spin_lock(&s), pthread_spin_unlock(&s);
	pthread_spin_trylock(&s), pthread_spin_unlock(&s);
	pthread_mutex_lock(&m);
	pthread_rwlock_wrlock(&w);
	pthread_create(&thread, NULL, waits, &late);
	return pthread_join(thread, NULL);
}
"""

PRIORITIES = """
#include <errno.h>
#include <pthread.h>

static void *runs(void *unused)
{
	return unused;
}

int main(void)
{
	struct sched_param param = {.sched_priority = 7};
	pthread_t thread;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return 77;
	pthread_create(&thread, NULL, runs, NULL);
	pthread_join(thread, NULL);
	pthread_setschedprio(pthread_self(), 3);
	param.sched_priority = 0;
	return sched_setscheduler(0, SCHED_OTHER, &param);
}
"""


def test_trylock_events_say_that_the_thread_only_tried(traced: Runner, compile_c: Compiler) -> None:
    process = traced(compile_c(ASKING, name="asking"), level=2).only
    taken = {
        name: [event.variant for event in process.of_program(name)]
        for name in ("MUTEX_TAKEN", "RWLOCK_TAKEN_READ", "RWLOCK_TAKEN_WRITE", "SPIN_TAKEN")
    }
    assert taken == {
        "MUTEX_TAKEN": ["", "TRIED", "TRIED", ""],
        "RWLOCK_TAKEN_READ": ["", "TRIED"],
        "RWLOCK_TAKEN_WRITE": ["", "TRIED", "TRIED", ""],
        "SPIN_TAKEN": ["", "TRIED"],
    }


def test_waits_have_their_deadline(traced: Runner, compile_c: Compiler) -> None:
    process = traced(compile_c(ASKING, name="asking"), level=1).only
    for name in ("MUTEX", "RWLOCK", "SEM"):
        # A past deadline does not stop the thread from starting to wait.
        assert [e.fields["timed"] for e in process.of_program(f"{name}_WAIT")] == [1], name
        (end,) = process.of_program(f"{name}_WAIT_END")
        assert end.fields["result"] == errno.ETIMEDOUT


def test_events_have_priorities(traced: Runner, compile_c: Compiler) -> None:
    run = traced(compile_c(PRIORITIES, name="priorities"), level=1)
    if run.status == 77:
        pytest.skip("real-time priorities need a right that is missing here")
    reported = [
        (event.fields["policy"], event.fields["priority"])
        for event in run.only.of("THREAD_PRIORITY")
    ]
    assert reported == [(1, 7), (1, 7), (1, 3), (0, 0)]
