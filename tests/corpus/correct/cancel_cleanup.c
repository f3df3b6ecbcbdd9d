/* SPDX-License-Identifier: MIT */
/* cancel_cleanup.c - threads are cancelled in a condition wait and in a read, and their clean-up handlers unlock. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int tids[2], pipe_ends[2];

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

static void unlock_table(void *rwlock)
{
	pthread_rwlock_unlock(rwlock);
}

static void *waiter(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlock, &lock);
	set_tid(&tids[0]);
	for (;;)
		pthread_cond_wait(&never, &lock);
	pthread_cleanup_pop(1);
	return unused;
}

static void *reader(void *unused)
{
	char byte;

	pthread_rwlock_rdlock(&table);
	pthread_cleanup_push(unlock_table, &table);
	set_tid(&tids[1]);
	if (read(pipe_ends[0], &byte, 1) != 1)
		abort();
	pthread_cleanup_pop(1);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	if (pipe(pipe_ends))
		return 1;
	first = start(waiter, NULL);
	second = start(reader, NULL);
	await_asleep(&tids[0]);
	await_asleep(&tids[1]);
	pthread_cancel(first);
	pthread_cancel(second);
	join(first);
	join(second);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pthread_rwlock_wrlock(&table);
	pthread_rwlock_unlock(&table);
	return 0;
}
