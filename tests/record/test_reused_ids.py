"""The kernel gives the id of an ended thread to a new thread of the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nptltrace

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")

# With TIMER, the C library itself starts the second thread. The program prints the id of both
# threads, and exits with 77 if the kernel reused it for neither.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t wanted, found;
static sem_t done;

static void use(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void *first(void *unused)
{
	wanted = gettid();
	pthread_setname_np(pthread_self(), "first");
	use();
	return unused;
}

static void second(union sigval unused)
{
	(void)unused;
	found = gettid();
	if (found == wanted)
		use();
	sem_post(&done);
}

static void *routine(void *unused)
{
	second((union sigval){0});
	return unused;
}

static void choose_next_id(void)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");

	if (!file || fprintf(file, "%d", wanted - 1) < 0 || fclose(file))
		exit(77);
}

int main(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = second};
	struct itimerspec soon = {.it_value = {.tv_nsec = 1000}};
	pthread_t thread;
	timer_t timer;

	pthread_create(&thread, NULL, first, NULL);
	pthread_join(thread, NULL);
	sem_init(&done, 0, 0);
#ifdef TIMER
	timer_create(CLOCK_MONOTONIC, &event, &timer);
#endif
	for (int tries = 0; found != wanted && tries < 200; tries++) {
		choose_next_id();
#ifdef TIMER
		timer_settime(timer, 0, &soon, NULL);
		sem_wait(&done);
#else
		(void)timer, (void)event, (void)soon;
		pthread_create(&thread, NULL, routine, NULL);
		pthread_join(thread, NULL);
#endif
	}
	printf("%d\n", wanted);
	return found == wanted ? 0 : 77;
}
"""


@pytest.mark.parametrize("how", ["-DCREATED", "-DTIMER"])
@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_the_second_thread_is_not_the_first(
    how: str, handler: str, compile_c: Compiler, ptt: Ptt, record: Recorder
) -> None:
    program = compile_c(PROGRAM, how, "-Wno-unused-function")
    trace = record(program, options=("--handler", handler, "--sched", "none"), status=None)
    if json.loads((trace / "info" / "session.json").read_text())["exit_status"] == 77:
        pytest.skip("the kernel does not let a program choose the ids of its threads")
    traces = nptltrace.open(trace)
    named = traces.sql("select tid, gen from threads where name = 'first'").to_pylist()
    ((tid, gen),) = [tuple(row.values()) for row in named]
    rows = traces.sql("select tid, gen, name from threads").to_pylist()
    (second,) = {row["name"] for row in rows if row["tid"] == tid and row["gen"] > gen}
    # No event says who made a thread that the C library starts itself.
    assert second in ({"", "program"} if how == "-DTIMER" else {"program"})
    query = "select tid, gen, thread_name from named_holds where object_name = 'lock'"
    holds = {tuple(row.values()) for row in traces.sql(query).to_pylist()}
    assert {(one, name) for one, _, name in holds} == {(tid, "first"), (tid, second)}
    assert len(holds) == 2
    lines = ptt("view", "--tid", str(tid), "--format", "jsonl", trace).stdout.splitlines()
    taken = [json.loads(line) for line in lines]
    names = [line.get("thread_name", "") for line in taken if line["event"] == "MUTEX_TAKEN"]
    assert names == ["first", second]
