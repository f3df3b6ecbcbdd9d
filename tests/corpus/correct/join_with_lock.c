/* SPDX-License-Identifier: MIT */
/* join_with_lock.c - main joins its workers while it holds a lock that they do not need, and then destroys their lock. */
#include "corpus.h"

static pthread_mutex_t whole = PTHREAD_MUTEX_INITIALIZER, part;

static void *run(void *unused)
{
	pthread_mutex_lock(&part);
	pthread_mutex_unlock(&part);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	pthread_mutex_lock(&whole);
	pthread_mutex_init(&part, NULL);
	first = start(run, NULL);
	second = start(run, NULL);
	join(first);
	join(second);
	pthread_mutex_destroy(&part);
	pthread_mutex_unlock(&whole);
	return 0;
}
