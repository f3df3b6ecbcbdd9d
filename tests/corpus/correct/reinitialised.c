/* SPDX-License-Identifier: MIT */
/* reinitialised.c - a free mutex is destroyed and initialised again; a different lock order follows. */
#include "corpus.h"

static pthread_mutex_t a, b;
static int turn;

static void lock_both(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_init(&a, NULL);
	pthread_mutex_init(&b, NULL);
	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
	pthread_mutex_destroy(&a);
	pthread_mutex_destroy(&b);
}

static void *other(void *unused)
{
	await(&turn, 1);
	lock_both(&b, &a);
	return unused;
}

int main(void)
{
	pthread_t thread = start(other, NULL);

	lock_both(&a, &b);
	arrive(&turn);
	join(thread);
	return 0;
}
