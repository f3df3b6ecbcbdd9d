/* SPDX-License-Identifier: MIT */
/* sem_waited_for_under_lock.c - semaphores count free and filled places; a thread ends between its wait and the post of the other thread. */
#include "corpus.h"

static sem_t free_places, filled_places;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ring[4], in, out;

static void *producer(void *unused)
{
	for (int i = 0; i < 100; i++) {
		sem_wait(&free_places);
		pthread_mutex_lock(&lock);
		ring[in++ % 4] = i;
		pthread_mutex_unlock(&lock);
		sem_post(&filled_places);
	}
	return unused;
}

static void *consumer(void *unused)
{
	for (int i = 0; i < 100; i++) {
		sem_wait(&filled_places);
		pthread_mutex_lock(&lock);
		if (ring[out++ % 4] < 0)
			abort();
		pthread_mutex_unlock(&lock);
		sem_post(&free_places);
	}
	return unused;
}

int main(void)
{
	pthread_t first, second;

	sem_init(&free_places, 0, 4);
	sem_init(&filled_places, 0, 0);
	first = start(producer, NULL);
	second = start(consumer, NULL);
	join(first);
	join(second);
	return 0;
}
