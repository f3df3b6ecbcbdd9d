/* SPDX-License-Identifier: MIT */
/* foreign_lock.c - a thread waits with a mutex that another thread has locked. */
/* expect: cond-wait-unlocked-mutex threads=waiter objects=filled,lock sites=waits */
/* also: unlock-not-owner unlock-unlocked exit-holding-lock */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int held, over;

static void *holder(void *unused)
{
	pthread_mutex_lock(&lock);
	arrive(&held);
	await(&over, 1);
	return unused;
}

static void *waiter(void *unused)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 5);

	i_am("waiter");
	await(&held, 1);
	pthread_cond_timedwait(&filled, &lock, &soon); /* SITE waits */
	pthread_mutex_unlock(&lock);
	arrive(&over);
	return unused;
}

int main(void)
{
	pthread_t first = start(holder, NULL), second = start(waiter, NULL);

	OBJECT(filled);
	OBJECT(lock);
	join(first);
	join(second);
	return 0;
}
