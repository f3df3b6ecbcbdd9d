/* SPDX-License-Identifier: MIT */
/* detached_keeps_lock.c - at the end a detached thread takes the locks that stop all others, and ends without releasing them. */
#include "corpus.h"

static pthread_mutex_t safepoint = PTHREAD_MUTEX_INITIALIZER, threads = PTHREAD_MUTEX_INITIALIZER;

static void *stops_all(void *unused)
{
	pthread_mutex_lock(&safepoint);
	/* this one it has used last itself */
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
