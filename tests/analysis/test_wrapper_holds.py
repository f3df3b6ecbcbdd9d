"""A hold that began in a wrapper of the thread library has the site of the wrapper's caller."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) int LOCK(pthread_mutex_t *mutex)
{
	int result = pthread_mutex_lock(mutex);

	__asm__ volatile("");
	return result;
}

static void *ask(void *mutex)
{
	LOCK(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int waits;

static void *await(void *unused)
{
	LOCK(&state);
	__atomic_store_n(&waits, 1, __ATOMIC_RELEASE);
	pthread_cond_wait(&changed, &state);
	pthread_mutex_unlock(&state);
	return unused;
}

__attribute__((noinline)) void change(void)
{
	pthread_t thread, other;

	pthread_create(&thread, NULL, await, NULL);
	/* A wait for the mutex would record stacks of it: its first word says that it is free. */
	while (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE))
		usleep(100);
	while (__atomic_load_n((int *)&state, __ATOMIC_ACQUIRE))
		usleep(100);
	LOCK(&state);
	pthread_cond_signal(&changed);
	pthread_create(&other, NULL, ask, &state);
	usleep(50000);
	pthread_mutex_unlock(&state);
	pthread_join(thread, NULL);
	pthread_join(other, NULL);
}

__attribute__((noinline)) void post(void)
{
	pthread_t thread;

	LOCK(&queue);
	pthread_create(&thread, NULL, ask, &queue);
	usleep(50000);
	pthread_mutex_unlock(&queue);
	pthread_join(thread, NULL);
}

int main(void)
{
	post();
	change();
	return 0;
}
"""


@pytest.mark.parametrize("name", ["ngx_thread_mutex_lock", "guard_lock"])
def test_holders_in_wrappers(name: str, compile_c: Compiler, record: Recorder, ptt: Ptt) -> None:
    """The tracer records the caller of a wrapper that it knows; otherwise only the release."""
    known = name == "ngx_thread_mutex_lock"
    trace = record(compile_c(PROGRAM, f"-DLOCK={name}"))
    skip = ["--skip", name]
    report = json.loads(ptt("report", "--format", "json", *skip, trace).stdout)
    (lock,) = [item for item in report["objects"] if item["name"] == "queue"]
    (blamed,) = lock["blamed"]
    assert (blamed["released"], blamed["site"].partition("+")[0]) == (not known, "post")
    assert blamed["wait_caused_ns"] == lock["held_ns"] > 20_000_000
    # The same holds for the holder of a mutex that a woken thread takes back.
    (mutex,) = [item for item in report["objects"] if item["name"] == "state"]
    blamed = max(mutex["blamed"], key=lambda blame: blame["wait_caused_ns"])
    assert (blamed["released"], blamed["site"].partition("+")[0]) == (not known, "change")
    assert blamed["wait_caused_ns"] > 20_000_000
    query = (
        "select owner_site, owner_tid from named_waits where object_name = 'state' "
        "and function = 'await'"
    )
    (wait,) = json.loads(ptt("sql", "--format", "json", *skip, trace, query).stdout)
    assert wait["owner_tid"] == blamed["tid"]
    assert str(wait["owner_site"]).partition("+")[0] == ("change" if known else "None")
