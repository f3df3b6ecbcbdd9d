/* SPDX-License-Identifier: MIT */
/* many_threads.c - many threads, in turn or all at once, that take and release locks. */
/*
 * many_threads after COUNT PAIRS    each thread ends before the next begins
 * many_threads once COUNT PAIRS     all threads live at the same time: they work, wait for all, and work again
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long pairs;
static pthread_mutex_t all = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long total;

static void repeat(void)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	for (long i = 0; i < pairs; i++) {
		pthread_mutex_lock(&own);
		pthread_mutex_unlock(&own);
	}
	pthread_mutex_lock(&all);
	total += pairs + 1;
	pthread_mutex_unlock(&all);
}

static void *work(void *at_once)
{
	repeat();
	if (at_once) {
		pthread_barrier_wait(&barrier);
		repeat();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 1;
	pthread_t *thread = calloc((size_t)count, sizeof(*thread));
	int at_once = argc > 1 && !strcmp(argv[1], "once");
	pthread_attr_t small;

	pairs = argc > 3 ? atol(argv[3]) : 1;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&barrier, NULL, (unsigned int)count);
	for (long i = 0; i < count; i++) {
		if (pthread_create(&thread[i], &small, work, at_once ? &barrier : NULL)) {
			perror("pthread_create");
			return 2;
		}
		if (!at_once)
			pthread_join(thread[i], NULL);
	}
	for (long i = 0; at_once && i < count; i++)
		pthread_join(thread[i], NULL);
	printf("%ld\n", total);
	free(thread);
	return 0;
}
