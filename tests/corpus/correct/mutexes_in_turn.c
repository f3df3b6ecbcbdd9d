/* SPDX-License-Identifier: MIT */
/* mutexes_in_turn.c - a condition is used with two mutexes, the second when no thread waits with the first any more. */
#include "corpus.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int flag;

static void *waiter(void *lock)
{
	pthread_mutex_lock(lock);
	while (!flag)
		pthread_cond_wait(&change, lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

static void round_with(pthread_mutex_t *lock)
{
	pthread_t thread;

	flag = 0;
	thread = start(waiter, lock);
	pthread_mutex_lock(lock);
	flag = 1;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(lock);
	join(thread);
}

int main(void)
{
	for (int i = 0; i < 5; i++) {
		round_with(&first);
		round_with(&second);
	}
	return 0;
}
