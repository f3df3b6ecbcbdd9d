/* SPDX-License-Identifier: MIT */
/* sem_signal.c - semaphores as signals: a thread waits and another thread posts. */
#include "corpus.h"

static sem_t go, done;

static void *worker(void *unused)
{
	for (int i = 0; i < 50; i++) {
		sem_wait(&go);
		sem_post(&done);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	thread = start(worker, NULL);
	for (int i = 0; i < 50; i++) {
		sem_post(&go);
		sem_wait(&done);
	}
	join(thread);
	sem_destroy(&go);
	sem_destroy(&done);
	return 0;
}
