/* SPDX-License-Identifier: MIT */
/* nested_monitor.c - a consumer waits for an item and holds the lock of the shop; the producer needs that lock. */
/* expect: stuck threads=consumer,producer objects=shop,filled sites=waits,comes */
/* run: hangs 3 */
#include "corpus.h"

static pthread_mutex_t shop = PTHREAD_MUTEX_INITIALIZER, shelf = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items, inside;

static void *consumer(void *unused)
{
	i_am("consumer");
	pthread_mutex_lock(&shop);
	pthread_mutex_lock(&shelf);
	arrive(&inside);
	while (!items) {
		for_ever();
		pthread_cond_wait(&filled, &shelf); /* SITE waits */
	}
	items--;
	pthread_mutex_unlock(&shelf);
	pthread_mutex_unlock(&shop);
	return unused;
}

static void *producer(void *unused)
{
	i_am("producer");
	await(&inside, 1);
	for_ever();
	pthread_mutex_lock(&shop); /* SITE comes */
	pthread_mutex_lock(&shelf);
	items++;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&shelf);
	pthread_mutex_unlock(&shop);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(shop);
	OBJECT(filled);
	first = start(consumer, NULL);
	second = start(producer, NULL);
	for_ever();
	join(first);
	join(second);
	return 0;
}
