/* SPDX-License-Identifier: MIT */
/* pairs.c - times uncontended lock + unlock pairs, one lock a thread: pairs THREADS PAIRS prints ns a pair. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long pairs;
static pthread_barrier_t go;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *work(void *result)
{
	pthread_mutex_t *lock = aligned_alloc(256, 256);
	double began;
	long i;

	pthread_mutex_init(lock, NULL);
	pthread_barrier_wait(&go);
	for (i = 0; i < pairs / 10; i++) { /* warm-up */
		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
	}
	began = now();
	for (i = 0; i < pairs; i++) {
		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
	}
	*(double *)result = (now() - began) / (double)pairs;
	return NULL;
}

int main(int argc, char **argv)
{
	int i, threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread[64];
	double ns[64], sum = 0;

	pairs = argc > 2 ? atol(argv[2]) : 10000000;
	if (threads < 1 || threads > 64)
		return 2;
	pthread_barrier_init(&go, NULL, (unsigned int)threads);
	for (i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work, &ns[i]);
	for (i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		sum += ns[i];
	}
	printf("%.3f\n", sum / threads);
	return 0;
}
