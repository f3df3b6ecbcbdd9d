/* SPDX-License-Identifier: MIT */
/* few_at_table.c - philosophers take the left fork first; a semaphore admits one philosopher fewer than there are forks. */
#include "corpus.h"

#define PHILOSOPHERS 5

static pthread_mutex_t forks[PHILOSOPHERS];
static sem_t chairs;

static void *dine(void *number)
{
	long left = (long)number, right = (left + 1) % PHILOSOPHERS;

	for (int i = 0; i < 20; i++) {
		sem_wait(&chairs);
		pthread_mutex_lock(&forks[left]);
		pthread_mutex_lock(&forks[right]);
		pthread_mutex_unlock(&forks[right]);
		pthread_mutex_unlock(&forks[left]);
		sem_post(&chairs);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[PHILOSOPHERS];

	sem_init(&chairs, 0, PHILOSOPHERS - 1);
	for (long i = 0; i < PHILOSOPHERS; i++)
		pthread_mutex_init(&forks[i], NULL);
	for (long i = 0; i < PHILOSOPHERS; i++)
		threads[i] = start(dine, (void *)i);
	for (int i = 0; i < PHILOSOPHERS; i++)
		join(threads[i]);
	return 0;
}
