/* SPDX-License-Identifier: MIT */
/* sem_lock.c - binary semaphores serve as locks; all threads take them in the same order. */
#include "corpus.h"

static sem_t *outer, inner;
static long counter;

static void *run(void *unused)
{
	for (int i = 0; i < 100; i++) {
		sem_wait(outer);
		sem_wait(&inner);
		counter++;
		sem_post(&inner);
		sem_post(outer);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[3];
	char name[40];

	snprintf(name, sizeof(name), "/corpus-%d", getpid());
	outer = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
	if (outer == SEM_FAILED)
		return 77;
	sem_unlink(name);
	sem_init(&inner, 0, 1);
	for (int i = 0; i < 3; i++)
		threads[i] = start(run, NULL);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	sem_close(outer);
	sem_destroy(&inner);
	return counter != 300;
}
