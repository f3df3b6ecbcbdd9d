/* SPDX-License-Identifier: MIT */
/* detached_wanted.c - a detached thread ends with a lock that others used before it, and want to use again. */
/* expect: exit-holding-lock threads=worker objects=cache sites=locks */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *unused)
{
	i_am("worker");
	pthread_mutex_lock(&cache); /* SITE locks */
	return unused;
}

int main(void)
{
	OBJECT(cache);
	pthread_mutex_lock(&cache);
	pthread_mutex_unlock(&cache);
	pthread_detach(start(worker, NULL));
	await_threads(1);
	for_ever();
	pthread_mutex_lock(&cache);
	pthread_mutex_unlock(&cache);
	return 0;
}
