/* SPDX-License-Identifier: MIT */
/* order_once_then_other.c - the start locks in one order before any thread begins; the shutdown locks in the other order after all threads have ended. */
#include "corpus.h"

static pthread_mutex_t config = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_both(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *run(void *unused)
{
	for (int i = 0; i < 50; i++)
		lock_both(&log_lock, &config);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	lock_both(&config, &log_lock);
	first = start(run, NULL);
	second = start(run, NULL);
	join(first);
	join(second);
	lock_both(&config, &log_lock);
	return 0;
}
