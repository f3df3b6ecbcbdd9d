/* SPDX-License-Identifier: MIT */
/* quiet.c - threads that make no system call of their own between two marks. */
/*
 * quiet THREADS PAIRS [MS]
 *
 * After MS milliseconds each thread, also the first, locks and unlocks its own mutex, closes descriptor -1111, works for PAIRS
 * pairs, and closes -2222. All events between the marks come from a single call site, which the tracer already knows.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static long pairs;

static void __attribute__((noinline)) repeat(pthread_mutex_t *mutex, long times)
{
	for (long i = 0; i < times; i++) {
		pthread_mutex_lock(mutex);
		pthread_mutex_unlock(mutex);
	}
}

static void *work(void *unused)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	(void)unused;
	repeat(&mutex, 1);
	close(-1111);
	repeat(&mutex, pairs);
	close(-2222);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 1;
	pthread_t thread[64];

	pairs = argc > 2 ? atol(argv[2]) : 1000;
	usleep(argc > 3 ? (unsigned int)atol(argv[3]) * 1000 : 0); /* until the recorder has brought all buffers */
	for (long i = 1; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, NULL))
			return 1;
	work(NULL);
	for (long i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
