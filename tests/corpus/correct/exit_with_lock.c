/* SPDX-License-Identifier: MIT */
/* exit_with_lock.c - a thread calls exit under its lock, while main joins it. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	exit(0);
	return unused;
}

int main(void)
{
	join(start(worker, NULL));
	return 1;
}
