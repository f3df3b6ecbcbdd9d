/* SPDX-License-Identifier: MIT */
/* order_by_barrier.c - a barrier separates the phase with one lock order from the phase with the other order. */
#include "corpus.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t phase;

static void lock_both(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *run(void *unused)
{
	for (int i = 0; i < 20; i++)
		lock_both(&a, &b);
	pthread_barrier_wait(&phase);
	for (int i = 0; i < 20; i++)
		lock_both(&b, &a);
	return unused;
}

int main(void)
{
	pthread_t threads[3];

	pthread_barrier_init(&phase, NULL, 3);
	for (int i = 0; i < 3; i++)
		threads[i] = start(run, NULL);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	pthread_barrier_destroy(&phase);
	return 0;
}
