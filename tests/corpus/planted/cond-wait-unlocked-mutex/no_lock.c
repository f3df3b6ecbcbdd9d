/* SPDX-License-Identifier: MIT */
/* no_lock.c - a thread waits on a condition with a mutex that nobody has locked. */
/* expect: cond-wait-unlocked-mutex threads=waiter objects=filled,lock sites=waits */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int waiting;

static void *waiter(void *unused)
{
	i_am("waiter");
	set_tid(&waiting);
	pthread_cond_wait(&filled, &lock); /* SITE waits */
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread = start(waiter, NULL);

	OBJECT(filled);
	OBJECT(lock);
	await_asleep(&waiting);
	pthread_cond_broadcast(&filled);
	join(thread);
	return 0;
}
