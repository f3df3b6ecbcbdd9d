/* SPDX-License-Identifier: MIT */
/* two_locks.c - a thread of the C standard leaves by thrd_exit with a write lock and a spin lock. */
/* expect: exit-holding-lock threads=worker objects=slot sites=spins */
/* also: exit-holding-lock */
#include "corpus.h"
#include <threads.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t slot;

static int worker(void *unused)
{
	i_am("worker");
	pthread_rwlock_wrlock(&table);
	pthread_spin_lock(&slot); /* SITE spins */
	thrd_exit(unused != NULL);
}

int main(void)
{
	thrd_t thread;

	OBJECT(slot);
	pthread_spin_init(&slot, PTHREAD_PROCESS_PRIVATE);
	thrd_create(&thread, worker, NULL);
	thrd_join(thread, NULL);
	return 0;
}
