/* SPDX-License-Identifier: MIT */
/* bounded_queue.c - producers and consumers share a bounded queue with two conditions. */
#include "corpus.h"

#define PLACES 3
#define ITEMS 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int items;

static void *produce(void *unused)
{
	for (int i = 0; i < ITEMS; i++) {
		pthread_mutex_lock(&lock);
		while (items == PLACES)
			pthread_cond_wait(&not_full, &lock);
		items++;
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void *consume(void *unused)
{
	for (int i = 0; i < ITEMS; i++) {
		pthread_mutex_lock(&lock);
		while (items == 0)
			pthread_cond_wait(&not_empty, &lock);
		items--;
		pthread_cond_signal(&not_full);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		threads[i] = start(i % 2 ? produce : consume, NULL);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	pthread_cond_destroy(&not_full);
	pthread_cond_destroy(&not_empty);
	pthread_mutex_destroy(&lock);
	return items;
}
