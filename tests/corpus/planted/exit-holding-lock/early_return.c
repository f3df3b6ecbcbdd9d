/* SPDX-License-Identifier: MIT */
/* early_return.c - a worker that finds nothing to do returns without unlocking. */
/* expect: exit-holding-lock threads=worker objects=jobs sites=locks */
#include "corpus.h"

static pthread_mutex_t jobs = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *worker(void *unused)
{
	i_am("worker");
	pthread_mutex_lock(&jobs); /* SITE locks */
	if (count == 0)
		return unused;
	count--;
	pthread_mutex_unlock(&jobs);
	return unused;
}

int main(void)
{
	OBJECT(jobs);
	join(start(worker, NULL));
	return 0;
}
