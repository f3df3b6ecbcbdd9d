/* SPDX-License-Identifier: MIT */
/* trylock_backoff.c - a thread only tries for the second lock, and releases the first lock if that fails. */
#include "corpus.h"
#include <sched.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int both;

static void *run(void *other)
{
	pthread_mutex_t *first = other ? &b : &a, *second = other ? &a : &b;

	meet(&both, 2);
	for (int i = 0; i < 500; i++) {
		pthread_mutex_lock(first);
		while (pthread_mutex_trylock(second) != 0) {
			pthread_mutex_unlock(first);
			sched_yield();
			pthread_mutex_lock(first);
		}
		pthread_mutex_unlock(second);
		pthread_mutex_unlock(first);
	}
	return NULL;
}

int main(void)
{
	pthread_t one = start(run, NULL), two = start(run, "");

	join(one);
	join(two);
	return 0;
}
