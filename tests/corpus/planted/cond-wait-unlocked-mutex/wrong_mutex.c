/* SPDX-License-Identifier: MIT */
/* wrong_mutex.c - a thread has locked one mutex and waits with another. */
/* expect: cond-wait-unlocked-mutex threads=waiter objects=filled,other sites=waits */
/* also: exit-holding-lock */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;

static void *waiter(void *unused)
{
	struct timespec soon = in_ms(CLOCK_MONOTONIC, 5);

	i_am("waiter");
	pthread_mutex_lock(&lock);
	pthread_cond_clockwait(&filled, &other, CLOCK_MONOTONIC, &soon); /* SITE waits */
	pthread_mutex_unlock(&other);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	OBJECT(filled);
	OBJECT(other);
	join(start(waiter, NULL));
	return 0;
}
