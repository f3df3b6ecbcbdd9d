/* SPDX-License-Identifier: MIT */
/* killed_at_work.c - a program is killed at work: threads hold locks and are not joined, and a barrier is half full. */
/* run: hangs 4 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t round_end;
static int held;

/* Stands for a read from a terminal or a socket: it goes on when input comes. */
static void *reader(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_rwlock_rdlock(&table);
	arrive(&held);
	for_ever();
	for (;;)
		pause();
	return unused;
}

static void *waiter(void *unused)
{
	await(&held, 1);
	pthread_mutex_lock(&other);
	for_ever();
	pthread_mutex_lock(&lock);
	return unused;
}

static void *rounds(void *unused)
{
	for_ever();
	pthread_barrier_wait(&round_end);
	return unused;
}

static void *ended(void *unused)
{
	return unused;
}

int main(void)
{
	pthread_t threads[4];

	pthread_barrier_init(&round_end, NULL, 2);
	threads[0] = start(reader, NULL);
	threads[1] = start(waiter, NULL);
	threads[2] = start(rounds, NULL);
	threads[3] = start(ended, NULL);
	await_threads(4);
	for_ever();
	pause();
	pthread_barrier_wait(&round_end);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	return 0;
}
