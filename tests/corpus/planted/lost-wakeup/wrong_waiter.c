/* SPDX-License-Identifier: MIT */
/* wrong_waiter.c - two kinds of waiters share a condition, and a signal for one wakes the other. */
/* expect: lost-wakeup threads=consumer objects=changed sites=consumer-waits,signals */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int waiting, full, closed;

static void *closer(void *unused)
{
	i_am("closer");
	pthread_mutex_lock(&lock);
	waiting++;
	while (!closed)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *consumer(void *unused)
{
	i_am("consumer");
	pthread_mutex_lock(&lock);
	waiting++;
	while (!full)
		pthread_cond_wait(&changed, &lock); /* SITE consumer-waits */
	pthread_mutex_unlock(&lock);
	return unused;
}

static void wait_for(int count)
{
	int there = 0;

	while (!there) {
		pthread_mutex_lock(&lock);
		there = waiting == count;
		pthread_mutex_unlock(&lock);
		nap_ms(1);
	}
}

int main(void)
{
	pthread_t first, second;

	OBJECT(changed);
	first = start(closer, NULL);
	wait_for(1);
	second = start(consumer, NULL);
	wait_for(2);
	pthread_mutex_lock(&lock);
	full = 1;
	pthread_cond_signal(&changed); /* SITE signals */
	pthread_mutex_unlock(&lock);
	for_ever();
	join(second);
	join(first);
	return 0;
}
