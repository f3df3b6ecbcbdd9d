/* SPDX-License-Identifier: MIT */
/* signal_first.c - a condition is signalled before the other thread waits; that thread waits without a look. */
/* expect: lost-wakeup threads=consumer objects=ready sites=waits */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int signalled;

static void *consumer(void *unused)
{
	i_am("consumer");
	await(&signalled, 1);
	pthread_mutex_lock(&lock);
	for_ever();
	pthread_cond_wait(&ready, &lock); /* SITE waits */
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread = start(consumer, NULL);

	i_am("main");
	OBJECT(ready);
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&ready); /* SITE signals */
	pthread_mutex_unlock(&lock);
	arrive(&signalled);
	for_ever();
	join(thread);
	return 0;
}
