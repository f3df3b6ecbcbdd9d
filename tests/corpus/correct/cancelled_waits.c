/* SPDX-License-Identifier: MIT */
/* cancelled_waits.c - threads are cancelled in joins, in semaphore waits and while they hold read/write locks, and leave nothing behind. */
#include "corpus.h"

static sem_t never;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int tids[3];

static void *waits(void *unused)
{
	set_tid(&tids[0]);
	sem_wait(&never);
	return unused;
}

static void *joins(void *thread)
{
	set_tid(&tids[1]);
	pthread_join(*(pthread_t *)thread, NULL);
	return NULL;
}

static void unlock(void *rwlock)
{
	pthread_rwlock_unlock(rwlock);
}

static void *reads(void *unused)
{
	pthread_rwlock_rdlock(&table);
	pthread_cleanup_push(unlock, &table);
	set_tid(&tids[2]);
	for (;;)
		pause();
	pthread_cleanup_pop(1);
	return unused;
}

int main(void)
{
	pthread_t waiter, joiner, reader;

	sem_init(&never, 0, 0);
	waiter = start(waits, NULL);
	joiner = start(joins, &waiter);
	reader = start(reads, NULL);
	for (int i = 0; i < 3; i++)
		await_asleep(&tids[i]);
	pthread_cancel(joiner);
	join(joiner);
	pthread_cancel(waiter);
	join(waiter);
	pthread_cancel(reader);
	join(reader);
	sem_destroy(&never);
	pthread_rwlock_wrlock(&table);
	pthread_rwlock_unlock(&table);
	return 0;
}
