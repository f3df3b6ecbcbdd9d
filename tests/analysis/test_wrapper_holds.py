"""Holds that began in a wrapper of the thread library are known by where they ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) int ngx_thread_mutex_lock(pthread_mutex_t *mutex)
{
	int result = pthread_mutex_lock(mutex);

	__asm__ volatile("");
	return result;
}

static void *ask(void *unused)
{
	ngx_thread_mutex_lock(&queue);
	pthread_mutex_unlock(&queue);
	return unused;
}

__attribute__((noinline)) void post(void)
{
	pthread_t thread;

	ngx_thread_mutex_lock(&queue);
	pthread_create(&thread, NULL, ask, NULL);
	usleep(50000);
	pthread_mutex_unlock(&queue);
	pthread_join(thread, NULL);
}

int main(void)
{
	post();
	return 0;
}
"""


def test_the_release_says_who_held_it(compile_c: Compiler, record: Recorder, ptt: Ptt) -> None:
    trace = record(compile_c(PROGRAM))
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    (lock,) = [one for one in report["objects"] if one["name"] == "queue"]
    (blamed,) = lock["blamed"]
    assert (blamed["released"], blamed["site"].partition("+")[0]) == (True, "post")
    assert blamed["wait_caused_ns"] == lock["held_ns"] > 20_000_000
