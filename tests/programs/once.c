/* SPDX-License-Identifier: MIT */
/* once.c - a routine that other threads wait for, a routine that is cancelled and runs again, and a routine inside another. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "show.h"

static pthread_once_t slow_once = PTHREAD_ONCE_INIT, cancelled_once = PTHREAD_ONCE_INIT;
static pthread_once_t outer_once = PTHREAD_ONCE_INIT, inner_once = PTHREAD_ONCE_INIT;
static int slow_runs, cancelled_runs, inner_runs;
static int waiter; /* the thread that is about to wait for the slow routine */

static void slow(void)
{
	arrive();
	while (!__atomic_load_n(&waiter, __ATOMIC_ACQUIRE))
		nap();
	await_asleep(waiter);
	for (int i = 0; i < 20; i++)
		nap();
	slow_runs++;
}

static void wait_for_cancellation(void)
{
	if (cancelled_runs++ == 0) {
		arrive();
		pause();
	}
}

static void inner(void)
{
	inner_runs++;
}

static void outer(void)
{
	pthread_once(&inner_once, inner);
	pthread_once(&inner_once, inner);
}

static void *run_slow(void *arg)
{
	(void)arg;
	pthread_once(&slow_once, slow);
	return NULL;
}

static void *run_cancelled(void *arg)
{
	if (arg)
		arrive();
	pthread_once(&cancelled_once, wait_for_cancellation);
	return NULL;
}

int main(void)
{
	pthread_t first, second, third;
	void *value;

	pthread_create(&first, NULL, run_slow, NULL);
	next_arrival();
	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	SHOW(pthread_once(&slow_once, slow));
	SHOW(pthread_once(&slow_once, slow));
	pthread_join(first, NULL);
	SHOW(slow_runs);

	pthread_create(&first, NULL, run_cancelled, NULL);
	let_block();
	pthread_create(&second, NULL, run_cancelled, &arrived);
	pthread_create(&third, NULL, run_cancelled, &arrived);
	let_block();
	let_block();
	pthread_cancel(first);
	pthread_join(first, &value);
	SHOW(value == PTHREAD_CANCELED);
	pthread_join(second, &value);
	pthread_join(third, NULL);
	SHOW(value);
	SHOW(cancelled_runs);

	SHOW(pthread_once(&outer_once, outer));
	SHOW(inner_runs);
	return 0;
}
