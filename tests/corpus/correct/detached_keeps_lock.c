/* SPDX-License-Identifier: MIT */
/* detached_keeps_lock.c - a detached thread ends with the locks that stop all other threads. */
#include "corpus.h"

static pthread_mutex_t safepoint = PTHREAD_MUTEX_INITIALIZER, threads = PTHREAD_MUTEX_INITIALIZER;

static void *stops_all(void *unused)
{
	pthread_mutex_lock(&safepoint);
	/* this thread is also the last user of this lock */
	pthread_mutex_lock(&threads);
	pthread_mutex_unlock(&threads);
	pthread_mutex_lock(&threads);
	return unused;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_mutex_lock(&safepoint);
	pthread_mutex_unlock(&safepoint);
	pthread_mutex_lock(&threads);
	pthread_mutex_unlock(&threads);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, stops_all, NULL))
		abort();
	pthread_attr_destroy(&attr);
	await_threads(1);
	return 0;
}
