/* SPDX-License-Identifier: MIT */
/* wait.c - a thread waits, with a time limit, on a condition that has been destroyed. */
/* expect: use-after-destroy threads=late objects=ready sites=waits */
/* options: --long-hold 1h --suspects */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready;
static int destroyed;

static void *late(void *unused)
{
	struct timespec soon;

	i_am("late");
	await(&destroyed, 1);
	soon = in_ms(CLOCK_REALTIME, 5);
	pthread_mutex_lock(&lock);
	pthread_cond_timedwait(&ready, &lock, &soon); /* SITE waits */
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread;

	OBJECT(ready);
	pthread_cond_init(&ready, NULL);
	thread = start(late, NULL);
	pthread_cond_destroy(&ready);
	arrive(&destroyed);
	join(thread);
	return 0;
}
