/* SPDX-License-Identifier: MIT */
/* reacquired.c - a wait takes its mutex back while an inner lock is held that others take inside it. */
/* expect: lock-order-inversion threads=waiter,adder objects=queue,stats sites=waits,adds */
#include "corpus.h"

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, stats = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items, waiting;

static void *waiter(void *unused)
{
	i_am("waiter");
	pthread_mutex_lock(&queue);
	pthread_mutex_lock(&stats);
	set_tid(&waiting);
	while (!items)
		pthread_cond_wait(&filled, &queue); /* SITE waits */
	pthread_mutex_unlock(&stats);
	pthread_mutex_unlock(&queue);
	return unused;
}

static void *adder(void *unused)
{
	i_am("adder");
	await_asleep(&waiting);
	pthread_mutex_lock(&queue);
	items = 1;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&queue);
	await_threads(2);
	pthread_mutex_lock(&queue);
	pthread_mutex_lock(&stats); /* SITE adds */
	pthread_mutex_unlock(&stats);
	pthread_mutex_unlock(&queue);
	return unused;
}

int main(void)
{
	pthread_t first = start(waiter, NULL), second = start(adder, NULL);

	OBJECT(queue);
	OBJECT(stats);
	join(first);
	join(second);
	return 0;
}
