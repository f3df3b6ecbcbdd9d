/* SPDX-License-Identifier: MIT */
/* recursive.c - a recursive mutex is locked again inside another lock; that makes no lock order. */
#include "corpus.h"

static pthread_mutex_t tree, leaf = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *unused)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&tree);
		pthread_mutex_lock(&leaf);
		pthread_mutex_lock(&tree); /* has it already */
		pthread_mutex_unlock(&tree);
		pthread_mutex_unlock(&leaf);
		if (pthread_mutex_trylock(&tree) == 0)
			pthread_mutex_unlock(&tree);
		pthread_mutex_unlock(&tree);
	}
	return unused;
}

int main(void)
{
	pthread_t first, second;

	init_mutex(&tree, PTHREAD_MUTEX_RECURSIVE);
	first = start(run, NULL);
	second = start(run, NULL);
	join(first);
	join(second);
	pthread_mutex_destroy(&tree);
	return 0;
}
