/* SPDX-License-Identifier: MIT */
/* resource_pool.c - a semaphore counts buffers: one thread takes a buffer and another returns it; a mutex guards the list on both sides. */
#include "corpus.h"

static sem_t buffers, filled;
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;

static void *reader(void *unused)
{
	for (int i = 0; i < 40; i++) {
		sem_wait(&buffers);
		pthread_mutex_lock(&list);
		pthread_mutex_unlock(&list);
		sem_post(&filled);
	}
	return unused;
}

static void *writer(void *unused)
{
	for (int i = 0; i < 40; i++) {
		sem_wait(&filled);
		pthread_mutex_lock(&list);
		sem_post(&buffers);
		pthread_mutex_unlock(&list);
	}
	return unused;
}

/* Takes a buffer inside the list's lock: there is one buffer more than the other threads can have. */
static void *statistics(void *unused)
{
	for (int i = 0; i < 40; i++) {
		pthread_mutex_lock(&list);
		if (sem_trywait(&buffers) == 0)
			sem_post(&buffers);
		pthread_mutex_unlock(&list);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[3];

	sem_init(&buffers, 0, 2);
	sem_init(&filled, 0, 0);
	threads[0] = start(reader, NULL);
	threads[1] = start(writer, NULL);
	threads[2] = start(statistics, NULL);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
