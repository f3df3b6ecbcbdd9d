"""`ptt report` as text: the contents of the first screen."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

QUIET = """
#include <pthread.h>
static pthread_mutex_t quiet[12];
int main(void)
{
	for (int i = 0; i < 12; i++) {
		pthread_mutex_init(&quiet[i], NULL);
		pthread_mutex_lock(&quiet[i]);
		pthread_mutex_unlock(&quiet[i]);
	}
	return 0;
}
"""
# Five threads are still waiting for work when the program ends.
WORKERS = """
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, here = PTHREAD_COND_INITIALIZER;
static int waiting;
static void *worker(void *arg)
{
	pthread_mutex_lock(&mutex);
	waiting++;
	pthread_cond_signal(&here);
	for (;;)
		pthread_cond_wait(&work, &mutex);
	return arg;
}
int main(void)
{
	pthread_t thread;

	for (int i = 0; i < 5; i++)
		pthread_create(&thread, NULL, worker, NULL);
	pthread_mutex_lock(&mutex);
	while (waiting < 5)
		pthread_cond_wait(&here, &mutex);
	pthread_mutex_unlock(&mutex);
	return 0;
}
"""
# Two kinds of locks on the heap, which have no name.
ON_HEAP = """
#include <pthread.h>
#include <stdlib.h>
static void *work(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}
__attribute__((noinline)) static void *new_pool(void)
{
	void *lock = malloc(sizeof(pthread_mutex_t));

	pthread_mutex_init(lock, NULL);
	return lock;
}
__attribute__((noinline)) static void *new_cache(void)
{
	pthread_mutex_t *lock = malloc(sizeof(*lock));

	pthread_mutex_init(lock, NULL);
	*(volatile int *)lock = 0;
	return lock;
}
int main(void)
{
	void *locks[] = { new_pool(), new_cache() };
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		pthread_create(&thread, NULL, work, locks[i]);
		pthread_join(thread, NULL);
	}
	return 0;
}
"""


GIVEN_UP = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *wait(void *unused)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (!pthread_mutex_timedlock(&lock, &until))
		abort();
	return unused;
}
int main(void)
{
	pthread_t thread;

	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, wait, NULL);
	pthread_join(thread, NULL);
	return 0;
}
"""


def test_a_report_says_that_each_wait_was_given_up(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    trace = record(compile_c(GIVEN_UP))
    assert "2 threads; each wait for a lock was given up\n" in ptt("report", trace).stdout
    now = ptt("top", trace).stdout
    assert "each wait for a lock was given up" in now
    assert "nothing was contended" not in now


def test_objects_that_nobody_waited_for_are_left_out(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    trace = record(compile_c(QUIET))
    text = ptt("report", trace).stdout
    assert "1 thread; nothing was contended\n" in text
    assert "\n  12 objects that nobody waited for (-n 0 shows all)\n" in text
    assert "quiet" not in text
    everything = ptt("report", "-n", "0", trace).stdout
    assert everything.count("  mutex quiet") == 12
    assert "shows all" not in everything


def test_threads_that_wait_for_work_to_the_end_are_counted(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    text = ptt("report", record(compile_c(WORKERS))).stdout
    assert "5 threads were still waiting for work at the end" in text
    assert text.count("for cond work since") == 3
    assert "\n  and 2 more\n" in text


def test_locks_without_names_are_named_by_their_call_site(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    trace = record(compile_c(ON_HEAP))
    text = " ".join(ptt("report", "-n", "0", trace).stdout.split())
    for maker in ("new_pool", "new_cache"):
        assert re.search(rf"mutex 0x\w+ .{{,80}}initialized at {maker}\+0x\w+ \(", text), text
    document = json.loads(ptt("report", "--format", "json", trace).stdout)
    places = {item["init_site"].split("+")[0]: item for item in document["objects"]}
    assert {"new_pool", "new_cache"} <= places.keys()
    assert places["new_pool"]["first_site"].startswith("work+")
