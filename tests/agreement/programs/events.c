/* SPDX-License-Identifier: MIT */
/* events.c - a million events of one thread; two threads contend before and after. */
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER;

static void *hold(void *unused)
{
	struct timespec rest = {0, 1000000};

	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&lock);
		nanosleep(&rest, NULL);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, hold, NULL);
	for (int i = 0; i < 100000; i++) {
		pthread_mutex_lock(&own);
		pthread_mutex_unlock(&own);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
