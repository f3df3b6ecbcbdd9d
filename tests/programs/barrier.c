/* SPDX-License-Identifier: MIT */
/* barrier.c - three threads meet twice at a barrier; in each round one thread gets PTHREAD_BARRIER_SERIAL_THREAD. */
#define _GNU_SOURCE
#include <pthread.h>

#include "show.h"

static pthread_barrier_t barrier;
static int serial;

static void *meet(void *arg)
{
	int i;

	if (arg)
		arrive();
	for (i = 0; i < 2; i++)
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
			__atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(void)
{
	pthread_t thread[2];
	int i;

	SHOW(pthread_barrier_init(&barrier, NULL, 0));
	SHOW(pthread_barrier_init(&barrier, NULL, 3));
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, meet, &barrier);
	for (i = 0; i < 2; i++)
		let_block();
	meet(NULL);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	SHOW(serial);
	SHOW(pthread_barrier_destroy(&barrier));
	return 0;
}
