/* SPDX-License-Identifier: MIT */
/* semaphore.c - main destroys a semaphore after the first post; the second worker then posts it. */
/* expect: use-after-destroy threads=second objects=finished sites=posts */
#include "corpus.h"

static sem_t finished;
static int destroyed;

static void *first(void *unused)
{
	sem_post(&finished);
	return unused;
}

static void *second(void *unused)
{
	i_am("second");
	await(&destroyed, 1);
	sem_post(&finished); /* SITE posts */
	return unused;
}

int main(void)
{
	pthread_t threads[2];

	OBJECT(finished);
	sem_init(&finished, 0, 0);
	threads[0] = start(first, NULL);
	threads[1] = start(second, NULL);
	sem_wait(&finished);
	sem_destroy(&finished);
	arrive(&destroyed);
	join(threads[0]);
	join(threads[1]);
	return 0;
}
