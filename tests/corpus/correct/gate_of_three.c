/* SPDX-License-Identifier: MIT */
/* gate_of_three.c - a ring of three lock orders; each order is taken with the gate, a read/write lock, held for writing. */
#include "corpus.h"

static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t locks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				   PTHREAD_MUTEX_INITIALIZER};

static void *run(void *number)
{
	long me = (long)number;

	for (int i = 0; i < 50; i++) {
		pthread_rwlock_wrlock(&gate);
		pthread_mutex_lock(&locks[me]);
		pthread_mutex_lock(&locks[(me + 1) % 3]);
		pthread_mutex_unlock(&locks[(me + 1) % 3]);
		pthread_mutex_unlock(&locks[me]);
		pthread_rwlock_unlock(&gate);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[3];

	for (long i = 0; i < 3; i++)
		threads[i] = start(run, (void *)i);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
