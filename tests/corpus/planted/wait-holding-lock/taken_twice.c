/* SPDX-License-Identifier: MIT */
/* taken_twice.c - a thread waits on a condition with a recursive mutex that it has locked twice. */
/* expect: wait-holding-lock threads=consumer,producer objects=shop sites=pauses,takes */
#include "corpus.h"

static pthread_mutex_t shop = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t goods = PTHREAD_COND_INITIALIZER;
static int taken, ready;

static void *producer(void *unused)
{
	i_am("producer");
	await(&taken, 1);
	pthread_mutex_lock(&shop);
	ready = 1;
	pthread_cond_signal(&goods);
	pthread_mutex_unlock(&shop);
	return unused;
}

int main(void)
{
	struct timespec limit;
	pthread_t thread;

	OBJECT(shop);
	i_am("consumer");
	pthread_create(&thread, NULL, producer, NULL);
	pthread_mutex_lock(&shop); /* SITE takes */
	pthread_mutex_lock(&shop);
	arrive(&taken);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec++;
	while (!ready)
		if (pthread_cond_timedwait(&goods, &shop, &limit)) /* SITE pauses */
			break;
	pthread_mutex_unlock(&shop);
	pthread_mutex_unlock(&shop);
	pthread_join(thread, NULL);
	return 0;
}
