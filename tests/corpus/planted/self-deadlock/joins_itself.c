/* SPDX-License-Identifier: MIT */
/* joins_itself.c - a worker stops all workers, and joins itself. */
/* expect: self-deadlock threads=worker sites=joins */
#include "corpus.h"

static void *worker(void *unused)
{
	i_am("worker");
	if (pthread_join(pthread_self(), NULL) != EDEADLK) /* SITE joins */
		abort();
	return unused;
}

int main(void)
{
	join(start(worker, NULL));
	return 0;
}
