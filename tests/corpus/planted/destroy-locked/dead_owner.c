/* SPDX-License-Identifier: MIT */
/* dead_owner.c - a thread ends with its lock, which is destroyed later. */
/* expect: destroy-locked objects=lock sites=destroys */
/* also: exit-holding-lock */
#include "corpus.h"

static pthread_mutex_t lock;

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	return unused;
}

int main(void)
{
	OBJECT(lock);
	pthread_mutex_init(&lock, NULL);
	join(start(worker, NULL));
	pthread_mutex_destroy(&lock); /* SITE destroys */
	return 0;
}
