/* SPDX-License-Identifier: MIT */
/* timed.c - a timed wait with one mutex meets an untimed one with another. */
/* expect: cond-two-mutexes threads=timed,main objects=tick,slow_lock,fast_lock sites=timed-waits,main-waits */
#include "corpus.h"

static pthread_mutex_t slow_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t fast_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tick = PTHREAD_COND_INITIALIZER;
static int waiting, main_tid, over;

static void *timed(void *unused)
{
	struct timespec late = in_ms(CLOCK_MONOTONIC, 60000);

	i_am("timed");
	pthread_mutex_lock(&slow_lock);
	set_tid(&waiting);
	while (!over)
		pthread_cond_clockwait(&tick, &slow_lock, CLOCK_MONOTONIC, &late); /* SITE timed-waits */
	pthread_mutex_unlock(&slow_lock);
	return unused;
}

static void *ticker(void *unused)
{
	await_asleep(&main_tid);
	pthread_mutex_lock(&slow_lock);
	over = 1;
	pthread_mutex_unlock(&slow_lock);
	pthread_cond_broadcast(&tick);
	return unused;
}

int main(void)
{
	pthread_t first = start(timed, NULL), second;

	i_am("main");
	OBJECT(tick);
	OBJECT(slow_lock);
	OBJECT(fast_lock);
	await_asleep(&waiting);
	second = start(ticker, NULL);
	pthread_mutex_lock(&fast_lock);
	set_tid(&main_tid);
	pthread_cond_wait(&tick, &fast_lock); /* SITE main-waits */
	pthread_mutex_unlock(&fast_lock);
	join(first);
	join(second);
	return 0;
}
